#include "passes/distribute.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "passes/pins.h"
#include "passes/redistribute.h"

namespace vitrail {

namespace {

bool allows(const Op& op, char dim) {
  return op.dims().whole.find(dim) == std::string_view::npos;
}

class Distributor {
 public:
  Distributor(const Program& program, const Distribution& how)
      : source_(program),
        how_(how),
        pins_(pins_of(how)),
        values_(program, how),
        now_(program.values.size(), -1) {}

  Distributed run() {
    for (const Node& node : source_.nodes) {
      visit(node);
      origins_.resize(values_.program().nodes.size(), -1);
      origins_.back() = static_cast<int>(&node - source_.nodes.data());
    }
    Program& result = values_.program();
    for (const Output& out : source_.outputs) result.outputs.push_back({out.name, settled(out.value)});
    result.validate();
    origins_.resize(result.nodes.size(), -1);
    std::vector<Layout> layouts;
    for (size_t id = 0; id < result.values.size(); ++id)
      layouts.push_back(values_.layout(static_cast<ValueId>(id)));
    return {std::move(result), std::move(gradients_), std::move(layouts), std::move(origins_)};
  }

 private:
  // Outputs are whole but for their samples.
  ValueId settled(ValueId source) {
    Layout wanted;
    wanted[Axis::kData] = values_.layout(at(source))[Axis::kData];
    if (wanted[Axis::kData].kind == Placed::kPartial) wanted[Axis::kData] = {};
    return values_.in_layout(at(source), wanted, source_.nodes.back());
  }

  ValueId at(ValueId source) {
    return now_[source] >= 0 ? now_[source] : now_[source] = values_.adopt(source);
  }

  void visit(const Node& node) {
    std::vector<ValueId> ins;
    for (ValueId id : node.ins) ins.push_back(at(id));
    if (is<AccumulateOp>(*node.op)) return accumulate(node, ins);
    for (const Axis axis : kAxes)
      if (how_.mesh.size(axis) > 1) enter_stream(node, axis, ins);
    std::vector<Layout> outs(node.outs.size());
    for (const Axis axis : kAxes)
      if (how_.mesh.size(axis) > 1) decide(node, axis, ins, outs);
    record(node, ins, outs);
  }

  // The dim along which the residual stream is cut on an axis; 0: it is whole there.
  char stream_dim(Axis axis) const {
    for (const Pin& pin : pins_)
      if (pin.axis == axis && pin.on == PinOn::kStream) return pin.placed.dim;
    return 0;
  }

  // The stream is cut where it enters the first block.
  void enter_stream(const Node& node, Axis axis, std::vector<ValueId>& ins) {
    const char cut = stream_dim(axis);
    if (!cut || node.block < 0 || node.phase != Phase::kForward) return;
    for (ValueId& in : ins) {
      const Shape& shape = values_.shape(in);
      Layout layout = values_.layout(in);
      if (shape.rank() != 3 || !shape.has('B') || !shape.has(cut) || layout[axis].kind != Placed::kReplicated)
        continue;
      if (values_.is_persistent(in)) continue;
      if (values_.block_of(in) >= 0) continue;
      layout[axis] = Placed::shard(cut);
      in = values_.in_layout(in, layout, node);
    }
  }

  // Brings the inputs of a node into layouts from which it can compute on this axis, and says in which
  // layouts its outputs come out.
  void decide(const Node& node, Axis axis, std::vector<ValueId>& ins, std::vector<Layout>& outs) {
    if (passes_partial(node, axis, ins)) {
      for (Layout& out : outs) out[axis] = Placed::partial();
      return;
    }
    for (ValueId& in : ins)
      if (values_.layout(in)[axis].kind == Placed::kPartial) in = reduced(in, axis, node);
    const char dim = shared_dim(node, axis, ins);
    const char tied = dim == 'B' ? node.op->dims().with_batch : 0;
    for (ValueId& in : ins) {
      Layout wanted = values_.layout(in);
      const Shape& shape = values_.shape(in);
      const bool has = dim && shape.has(dim);
      if (tied && shape.has(tied) && wanted[axis].kind == Placed::kShard) continue;  // pinned as the batch is
      wanted[axis] = has ? Placed::shard(dim) : Placed{};
      in = values_.in_layout(in, wanted, node);
    }
    for (size_t o = 0; o < outs.size(); ++o) {
      const bool has = source_.values[node.outs[o]].desc.shape.has(dim);
      if (dim) outs[o][axis] = has ? Placed::shard(dim) : Placed::partial();
      if (makes_stream(node, axis)) outs[o][axis] = Placed::shard(stream_dim(axis));
    }
  }

  // Returns whether a node makes the stream's tokens of none; it then makes this rank's part of them.
  bool makes_stream(const Node& node, Axis axis) const {
    const auto* op = dynamic_cast<const MadeTokensOp*>(node.op.get());
    return op && op->tokens().name == stream_dim(axis);
  }

  // Returns whether a partial sum among the inputs may stay one.
  bool passes_partial(const Node& node, Axis axis, const std::vector<ValueId>& ins) const {
    const DimsRule rule = node.op->dims();
    size_t partial = 0, which = 0;
    bool others_whole = true;
    for (size_t i = 0; i < ins.size(); ++i) {
      const Placed& placed = values_.layout(ins[i])[axis];
      if (placed.kind == Placed::kPartial) {
        ++partial;
        which = i;
      } else {
        others_whole = others_whole && placed.kind == Placed::kReplicated;
      }
    }
    if (partial == 0) return false;
    if (rule.jointly_linear && partial == ins.size()) return true;
    return partial == 1 && others_whole && (rule.linear_in >> which & 1) != 0;
  }

  // A partial sum becomes whole, or a part of the tokens where the stream is.
  ValueId reduced(ValueId in, Axis axis, const Node& node) {
    Layout wanted = values_.layout(in);
    const char dim = stream_dim(axis);
    const bool stream = dim && values_.shape(in).has(dim) && node.block >= 0;
    wanted[axis] = stream ? Placed::shard(dim) : Placed{};
    return values_.in_layout(in, wanted, node);
  }

  // The dim along which a node is computed on an axis; 0: every rank computes all of it.
  char shared_dim(const Node& node, Axis axis, const std::vector<ValueId>& ins) const {
    const auto some = [&](auto&& holds) { return std::any_of(ins.begin(), ins.end(), holds); };
    const auto has = [&](char dim) {
      return allows(*node.op, dim) && some([&](ValueId in) { return values_.shape(in).has(dim); });
    };
    if (!some([&](ValueId in) { return values_.layout(in)[axis].kind == Placed::kShard; })) return 0;
    for (const Pin& pin : pins_) {
      const char dim = pin.placed.dim;
      if (pin.axis != axis || !has(dim)) continue;
      const bool cut = some([&](ValueId in) { return values_.layout(in)[axis] == Placed::shard(dim); });
      if (pin.on == PinOn::kValues || pin.on == PinOn::kStream) return dim;
      if (pin.on == PinOn::kParameters && cut) return dim;
      if (pin.on == PinOn::kAttention && is<AttentionOp, AttentionGradOp>(*node.op)) return dim;
    }
    return 0;
  }

  // A gradient keeps the layout in which it comes out: what a parameter has, or a partial sum of it.
  void accumulate(const Node& node, std::vector<ValueId>& ins) {
    const Value& sum = values_.program().values[ins[0]];
    Layout wanted = values_.layout(ins[1]);
    const Layout& kept = values_.layout(ins[0]);
    for (const Axis axis : kAxes)
      if (wanted[axis].kind != Placed::kPartial) wanted[axis] = kept[axis];
    const auto [known, fresh] = gradients_.try_emplace(sum.name, wanted);
    for (const Axis axis : kAxes)
      VT_CHECK(fresh || known->second[axis] == wanted[axis], "%s is summed in two layouts", sum.name.c_str());
    ins[1] = values_.in_layout(ins[1], wanted, node);
    record(node, ins, {});
  }

  void record(Node node, const std::vector<ValueId>& ins, const std::vector<Layout>& outs) {
    if (const auto* op = dynamic_cast<const MadeTokensOp*>(node.op.get())) {
      const Shape mine = local_shape(source_.values[node.outs[0]].desc.shape, outs[0], how_);
      node.op = op->with_tokens(mine[*mine.find(op->tokens().name)]);
    }
    const std::vector<ValueId> made = values_.record(node, ins, outs);
    for (size_t o = 0; o < made.size(); ++o) now_[node.outs[o]] = made[o];
  }

  const Program& source_;
  const Distribution& how_;
  std::vector<Pin> pins_;
  DistributedValues values_;
  std::vector<ValueId> now_;  // by value of the source
  std::map<std::string, Layout> gradients_;
  std::vector<int> origins_;  // by node of the result
};

}  // namespace

Distributed distribute(const Program& program, const Distribution& how) {
  for (const CutTable& table : how.cuts) {
    const bool whole = table.cuts.size() == static_cast<size_t>(how.mesh.size(table.axis)) + 1 &&
                       table.cuts[0] == 0 && std::is_sorted(table.cuts.begin(), table.cuts.end());
    VT_REQUIRE(whole, ErrorKind::kConfig, "the cuts of %c are no %d parts from 0 on", table.dim,
               how.mesh.size(table.axis));
  }
  return Distributor(program, how).run();
}

Layout pinned_layout(const Value& value, const Distribution& how) {
  Layout layout;
  const bool input = value.kind == ValueKind::kInput;
  const bool parameter = value.persistent() && value.category != Category::kStaging;
  for (const Pin& pin : pins_of(how)) {
    const bool meant = pin.on == PinOn::kValues || (pin.on == PinOn::kInputs && input) ||
                       (pin.on == PinOn::kParameters && parameter);
    if (meant && value.desc.shape.has(pin.placed.dim)) layout[pin.axis] = pin.placed;
  }
  return layout;
}

std::vector<int64_t> cuts_of(const Dim& dim, Axis axis, const Distribution& how) {
  const bool samples = axis == Axis::kData && (dim.name == 'B' || dim.name == 'R');
  const char name = samples ? 'B' : dim.name;  // pixels are cut as the batch is
  for (const CutTable& table : how.cuts)
    if (table.axis == axis && table.dim == name && table.cuts.back() == dim.local) return table.cuts;
  return cut_points(dim.local, how.mesh.size(axis), samples ? how.batch_unit : 1);
}

Shape local_shape(const Shape& whole, const Layout& layout, const Distribution& how) {
  Shape shape = whole;
  for (const Axis axis : kAxes) {
    if (layout[axis].kind != Placed::kShard) continue;
    const Dim& dim = shape[*shape.find(layout[axis].dim)];
    shape = shape.with(dim.name, part_of(dim, cuts_of(dim, axis, how), how.mesh.coordinate(axis)));
  }
  return shape;
}

void require_divisible_heads(int64_t heads, const Mesh& mesh) {
  const int64_t parts = static_cast<int64_t>(mesh.size(Axis::kTensor)) * mesh.size(Axis::kSequence);
  if (heads % parts == 0) return;
  std::string fits;
  for (int64_t n = 1; n <= heads; ++n)
    if (heads % n == 0) fits += (fits.empty() ? "" : ", ") + std::to_string(n);
  throw Error(ErrorKind::kConfig,
              strf("%lld heads cannot be shared by mesh.tp %d x mesh.sp %d ranks",
                   static_cast<long long>(heads), mesh.size(Axis::kTensor), mesh.size(Axis::kSequence)),
              "tp x sp may be " + fits);
}

}  // namespace vitrail
