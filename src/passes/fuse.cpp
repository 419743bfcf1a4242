// Makes coarse nodes of neighbours: a GEMM with its layernorm and epilogue, gradients with their sums.
#include "passes/passes.h"

#include <algorithm>
#include <map>

#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/scale.h"

namespace vitrail {

namespace {

// The epilogue ops that may follow a GEMM, in the order they must come.
constexpr std::string_view kAfter[] = {BiasOp::kKind, GeluOp::kKind, ScaleOp::kKind, AddOp::kKind};

class Fuser {
 public:
  Fuser(const Program& program, const RewriteTraits& options, const KernelRule& has_kernel)
      : program_(program),
        options_(options),
        has_kernel_(has_kernel),
        uses_(program.use_counts()),
        group_of_(program.nodes.size(), -1) {
    producer_.assign(program.values.size(), -1);
    reader_.assign(program.values.size(), -1);
    first_reader_.assign(program.values.size(), -1);
    for (int i = 0; i < node_count(); ++i) {
      for (ValueId id : program.nodes[i].outs) producer_[id] = i;
      for (ValueId id : program.nodes[i].ins) {
        reader_[id] = i;
        if (first_reader_[id] < 0) first_reader_[id] = i;
      }
    }
    count_for_clones();
  }

  Program run() {
    for (int i = 0; i < node_count(); ++i) {
      if (is_gemm(i)) form_group(i);
      if (options_.positions && node_is<ConcatTokensOp>(i)) join_positions(i);
      if (node_is<AccumulateOp>(i)) join_maker(i, 1);
      if (node_is<GeluGradOp, GeluSlopeGradOp>(i)) join_gelu_grad(i);
    }
    Program result{.values = program_.values, .nodes = {}, .outputs = program_.outputs};
    for (int i = 0; i < node_count(); ++i) {
      if (group_of_[i] < 0)
        result.nodes.push_back(program_.nodes[i]);
      else if (groups_[group_of_[i]].members.back() == i)
        result.nodes.push_back(fused_node(groups_[group_of_[i]]));
    }
    return result;
  }

 private:
  struct Group {
    std::vector<int> members;  // node indices in order
    int gemm = 0;
    int kept = FusedOp::kNone;  // the member whose output others read too
  };

  template <typename... Ops>
  bool node_is(int i) const {
    return is<Ops...>(*program_.nodes[i].op);
  }
  bool is_gemm(int i) const { return node_is<LinearOp, PatchEmbedOp>(i); }

  int node_count() const { return static_cast<int>(program_.nodes.size()); }

  // A node and the clone that recompute made of it are fused alike, or the two would round differently: the
  // values of both count the readers that one had before.
  void count_for_clones() {
    std::map<std::string_view, int> forward;
    std::vector<int> original(program_.nodes.size(), -1);
    for (int i = 0; i < node_count(); ++i) {
      const Node& node = program_.nodes[i];
      if (node.phase == Phase::kForward) forward.emplace(node.name, i);
      const auto found = forward.find(node.name);
      if (node.phase == Phase::kBackward && found != forward.end()) original[i] = found->second;
    }
    for (int i = 0; i < node_count(); ++i)
      for (ValueId id : program_.nodes[i].ins)
        if (original[i] < 0 && producer_[id] >= 0 && original[producer_[id]] >= 0)
          ++uses_[program_.nodes[original[producer_[id]]].outs[0]];
    for (int i = 0; i < node_count(); ++i)
      if (original[i] >= 0) uses_[program_.nodes[i].outs[0]] = uses_[program_.nodes[original[i]].outs[0]];
  }

  // Returns the only reader of node i's output, when nothing else needs it.
  int only_reader(int i) const {
    const ValueId out = program_.nodes[i].outs[0];
    return uses_[out] == 1 && !program_.is_output(out) ? reader_[out] : -1;
  }

  void form_group(int gemm) {
    Group group{{gemm}, gemm};
    const int norm = producer_[program_.nodes[gemm].ins[0]];
    if (takes_norm(norm, gemm)) group.members.insert(group.members.begin(), norm);
    const int chained = chain_before(gemm);
    if (chained >= 0) {
      group.members = groups_[chained].members;
      group.members.push_back(gemm);
    }
    const bool patches = node_is<PatchEmbedOp>(gemm);
    int stage = 0;
    for (int next = only_reader(gemm); next >= 0; next = only_reader(next)) {
      const int place = stage_of(next);
      if (place < stage || group_of_[next] >= 0 || (patches && node_is<AddOp>(next))) break;
      if (!is_row_operand(next, group)) break;
      group.members.push_back(next);
      stage = place + 1;
    }
    if (const int attention = only_reader(group.members.back()); takes_gemm(attention, group, chained))
      group.members.push_back(attention);
    keep_for_gelu(group);
    take_slope(group);
    if (group.members.size() < 2) return;
    if (chained < 0) groups_.emplace_back();
    const size_t at = chained < 0 ? groups_.size() - 1 : static_cast<size_t>(chained);
    for (int member : group.members) group_of_[member] = static_cast<int>(at);
    groups_[at] = std::move(group);
  }

  // Returns whether class-token attention can fuse the qkv linear it reads, with its layernorm and bias.
  bool takes_gemm(int attention, const Group& group, int chained) const {
    if (!options_.first_attention || attention < 0 || chained >= 0) return false;
    const auto* op = dynamic_cast<const AttentionOp*>(program_.nodes[attention].op.get());
    if (!op || op->queries() != QueryScope::kClassToken) return false;
    const Node& last = program_.nodes[group.members.back()];
    const bool plain = is<LinearOp, BiasOp>(*last.op);
    return plain && arithmetic_of(*program_.nodes[group.gemm].op) == Arithmetic::kExact &&
           program_.values[last.outs[0]].desc.dtype == DType::kF32;
  }

  // Adds the gelu of what the group computes although its gradient reads that too, where a kernel makes both:
  // the gelu is that of the kept, rounded value, as if it stood alone. Where the gradient reads a clone's,
  // the original keeps its own for nobody: both run by one kernel.
  void keep_for_gelu(Group& group) const {
    const ValueId out = program_.nodes[group.members.back()].outs[0];
    const int gelu = first_reader_[out];
    if (!has_kernel_ || gelu < 0 || uses_[out] < 2 || !node_is<GeluOp>(gelu) || group_of_[gelu] >= 0) return;
    add_where_one_kernel(group, gelu, static_cast<int>(group.members.size()) - 1);
  }

  // Adds a gelu that keeps its slope.
  void take_slope(Group& group) const {
    const int gelu = only_reader(group.members.back());
    if (has_kernel_ && gelu >= 0 && node_is<GeluSlopeOp>(gelu))
      add_where_one_kernel(group, gelu, FusedOp::kNone);
  }

  void add_where_one_kernel(Group& group, int node, int kept) const {
    Group with = group;
    with.kept = kept;
    with.members.push_back(node);
    if (has_whole_kernel(with)) group = std::move(with);
  }

  bool has_whole_kernel(const Group& group) const {
    const Node node = fused_node(group);
    return has_kernel_(*node.op, program_.descs(node.ins));
  }

  // Returns the group of a GEMM of the same kind that ends in the gelu which only `GEMM` reads; -1: none.
  int chain_before(int gemm) const {
    const int gelu = producer_[program_.nodes[gemm].ins[0]];
    if (!options_.chains || gelu < 0 || !node_is<GeluOp>(gelu) || group_of_[gelu] < 0) return -1;
    const Group& before = groups_[group_of_[gelu]];
    if (before.members.back() != gelu || only_reader(gelu) != gemm) return -1;
    for (int one : {before.gemm, gemm})
      if (!options_.chains(*program_.nodes[one].op)) return -1;
    return group_of_[gelu];
  }

  // Fuses a gelu's gradient with the GEMM that it follows. In 16 bits, or with the sums of its rows, the two
  // stay separate kernels unless there is one for both.
  void join_gelu_grad(int gelu_grad) {
    const Node& node = program_.nodes[gelu_grad];
    const int maker = producer_[node.ins[1]];
    if (maker < 0 || !node_is<LinearDxOp>(maker)) return;
    const bool full = node_is<GeluGradOp>(gelu_grad) && node.outs.size() == 1 &&
                      program_.values[node.outs[0]].desc.dtype == DType::kF32;
    if (full || (has_kernel_ && has_whole_kernel({{maker, gelu_grad}, maker}))) join_maker(gelu_grad, 1);
  }

  // Fuses a node with the producer of its input, where nothing else reads that: a gradient is added to its
  // sum, or passed through a gelu, in the epilogue.
  void join_maker(int node, int input) {
    const int maker = producer_[program_.nodes[node].ins[input]];
    if (maker < 0 || group_of_[maker] >= 0 || program_.nodes[maker].outs.size() != 1) return;
    if (!program_.nodes[maker].op->is_launched()) return;  // a collective is no kernel
    if (only_reader(maker) != node) return;
    group_of_[maker] = group_of_[node] = static_cast<int>(groups_.size());
    groups_.push_back({{maker, node}, maker});
  }

  // Fuses the joining of tokens with a change of their type and the positions that are added to them.
  void join_positions(int concat) {
    Group group{{concat}, concat};
    int next = only_reader(concat);
    if (next >= 0 && node_is<CastOp>(next)) {
      group.members.push_back(next);
      next = only_reader(next);
    }
    const ValueId flowing = program_.nodes[group.members.back()].outs[0];
    if (next < 0 || !node_is<BiasOp>(next) || program_.nodes[next].ins[0] != flowing) return;
    group.members.push_back(next);
    for (int member : group.members) group_of_[member] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }

  int stage_of(int node) const {
    const auto at = std::find(std::begin(kAfter), std::end(kAfter), program_.nodes[node].op->kind());
    return at == std::end(kAfter) ? -1 : static_cast<int>(at - std::begin(kAfter));
  }

  // A bias or scale must cover exactly the GEMM's outputs (a position table or a bias per head does not), and
  // a residual must differ from the value it is added to.
  bool is_row_operand(int node, const Group& group) const {
    const Node& n = program_.nodes[node];
    if (is<GeluOp>(*n.op)) return true;
    const ValueId flowing = program_.nodes[group.members.back()].outs[0];
    const ValueId other = n.ins[0] == flowing ? n.ins[1] : n.ins[0];
    if (is<AddOp>(*n.op)) return other != flowing;
    return n.ins[0] == flowing && program_.values[other].desc.elems() == outputs_of(group.gemm);
  }

  // Returns the number of features a GEMM writes per row.
  int64_t outputs_of(int gemm) const {
    const Node& node = program_.nodes[gemm];
    const Shape& w = program_.values[node.ins[1]].desc.shape;
    if (is<PatchEmbedOp>(*node.op)) return w.local('D');
    return linear_extents(program_.values[node.ins[0]].desc.shape, w).n;
  }

  // A GEMM can fuse the layernorm before it when that normalises exactly the contracted dims.
  bool takes_norm(int norm, int gemm) const {
    const Node& node = program_.nodes[gemm];
    if (norm < 0 || !node_is<LayernormOp>(norm)) return false;
    if (!options_.norms || !options_.norms(*node.op)) return false;
    const MatmulExtents e =
        linear_extents(program_.values[node.ins[0]].desc.shape, program_.values[node.ins[1]].desc.shape);
    return only_reader(norm) == gemm && program_.values[program_.nodes[norm].ins[1]].desc.elems() == e.k;
  }

  Node fused_node(const Group& group) const {
    Node node = program_.nodes[group.members.back()];
    const Node& gemm = program_.nodes[group.gemm];
    node.name = gemm.name;
    node.where = gemm.where;
    node.block = gemm.block;
    node.part = gemm.part;
    node.step = gemm.step;
    node.ins.clear();
    std::vector<FusedOp::Member> members;
    for (size_t m = 0; m < group.members.size(); ++m) {
      const Node& member = program_.nodes[group.members[m]];
      std::vector<FusedOp::Source> sources;
      for (ValueId id : member.ins) {
        const bool flows = m > 0 && id == program_.nodes[group.members[m - 1]].outs[0];
        if (!flows) node.ins.push_back(id);
        sources.push_back(flows ? made_by(static_cast<int>(m) - 1) : static_cast<int>(node.ins.size()) - 1);
      }
      members.push_back({member.op, std::move(sources), member.step});
    }
    if (group.kept != FusedOp::kNone) node.outs.push_back(program_.nodes[group.members[group.kept]].outs[0]);
    node.op = std::make_shared<FusedOp>(std::move(members), group.kept);
    return node;
  }

  const Program& program_;
  RewriteTraits options_;
  const KernelRule& has_kernel_;
  std::vector<int> uses_, group_of_, producer_, reader_, first_reader_;
  std::vector<Group> groups_;
};

}  // namespace

Program fuse(const Program& program, const RewriteTraits& options, const KernelRule& has_kernel) {
  const Program rows = options.residual_rows ? join_rows(program, options.norms) : program;
  Program result = Fuser(rows, options, has_kernel).run();
  result.validate();
  return result;
}

}  // namespace vitrail
