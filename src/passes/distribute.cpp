#include "passes/distribute.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/persistent.h"
#include "passes/redistribute.h"

namespace vitrail {

namespace {

bool allows(const Op& op, char dim) {
  return op.dims().whole.find(dim) == std::string_view::npos;
}

class Distributor {
 public:
  Distributor(const Program& program, const Distribution& how)
      : source_(program), how_(how), values_(program, how), now_(program.values.size(), -1) {}

  Distributed run() {
    for (const Node& node : source_.nodes) visit(node);
    Program& result = values_.program();
    for (const Output& out : source_.outputs) result.outputs.push_back({out.name, settled(out.value)});
    result.validate();
    return {std::move(result), std::move(gradients_)};
  }

 private:
  // Outputs are whole but for their samples.
  ValueId settled(ValueId source) {
    Layout wanted;
    wanted[Axis::kData] = values_.layout(at(source))[Axis::kData];
    if (wanted[Axis::kData].kind == Placed::kPartial) wanted[Axis::kData] = {};
    return values_.in_layout(at(source), wanted, source_.nodes.back());
  }

  ValueId at(ValueId source) { return now_[source] >= 0 ? now_[source] : now_[source] = values_.adopt(source); }

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

  // On sp the residual stream is cut where it enters the first block.
  void enter_stream(const Node& node, Axis axis, std::vector<ValueId>& ins) {
    const bool cut = axis == Axis::kSequence || (axis == Axis::kTensor && how_.tokens_on_tp);
    if (!cut || node.block < 0 || node.phase != Phase::kForward) return;
    for (ValueId& in : ins) {
      const Shape& shape = values_.shape(in);
      Layout layout = values_.layout(in);
      if (shape.rank() != 3 || !shape.has('B') || !shape.has('N') || layout[axis].kind != Placed::kReplicated)
        continue;
      if (values_.is_persistent(in)) continue;
      if (values_.block_of(in) >= 0) continue;
      layout[axis] = Placed::shard('N');
      in = values_.in_layout(in, layout, node);
    }
  }

  // Brings the inputs of a node into layouts from which it can compute on this axis, and says in which layouts
  // its outputs come out.
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
    }
  }

  // Whether a partial sum among the inputs may stay one.
  bool passes_partial(const Node& node, Axis axis, const std::vector<ValueId>& ins) const {
    const DimsRule rule = node.op->dims();
    size_t partial = 0, which = 0;
    bool others_whole = true;
    for (size_t i = 0; i < ins.size(); ++i) {
      const Placed& placed = values_.layout(ins[i])[axis];
      if (placed.kind == Placed::kPartial) ++partial, which = i;
      else others_whole = others_whole && placed.kind == Placed::kReplicated;
    }
    if (partial == 0) return false;
    if (rule.jointly_linear && partial == ins.size()) return true;
    return partial == 1 && others_whole && (rule.linear_in >> which & 1) != 0;
  }

  // A partial sum becomes whole, or a part of the tokens where the stream is.
  ValueId reduced(ValueId in, Axis axis, const Node& node) {
    Layout wanted = values_.layout(in);
    const bool tokens = axis == Axis::kSequence || how_.tokens_on_tp;
    const bool stream = axis != Axis::kData && tokens && values_.shape(in).has('N') && node.block >= 0;
    wanted[axis] = stream ? Placed::shard('N') : Placed{};
    return values_.in_layout(in, wanted, node);
  }

  // The dim along which a node is computed on an axis; 0: every rank computes all of it.
  char shared_dim(const Node& node, Axis axis, const std::vector<ValueId>& ins) const {
    const auto some = [&](auto&& holds) { return std::any_of(ins.begin(), ins.end(), holds); };
    const auto has = [&](char dim) {
      return allows(*node.op, dim) && some([&](ValueId in) { return values_.shape(in).has(dim); });
    };
    if (!some([&](ValueId in) { return values_.layout(in)[axis].kind == Placed::kShard; })) return 0;
    switch (axis) {
      case Axis::kData:
        return has('B') ? 'B' : 0;
      case Axis::kTensor:
        for (const char dim : {'H', 'F', 'N'})
          if (has(dim) && some([&](ValueId in) { return values_.layout(in)[axis] == Placed::shard(dim); }))
            return dim;
        return 0;
      case Axis::kSequence:
        if (has('N')) return 'N';
        return is<AttentionOp, AttentionGradOp>(*node.op) && has('H') ? 'H' : 0;
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

  void record(const Node& node, const std::vector<ValueId>& ins, const std::vector<Layout>& outs) {
    const std::vector<ValueId> made = values_.record(node, ins, outs);
    for (size_t o = 0; o < made.size(); ++o) now_[node.outs[o]] = made[o];
  }

  const Program& source_;
  const Distribution& how_;
  DistributedValues values_;
  std::vector<ValueId> now_;  // by value of the source
  std::map<std::string, Layout> gradients_;
};

}  // namespace

Distributed distribute(const Program& program, const Distribution& how) {
  return Distributor(program, how).run();
}

Layout pinned_layout(const Value& value, const Distribution& how) {
  Layout layout;
  const Shape& shape = value.desc.shape;
  const bool parameter = value.persistent() && value.category != Category::kStaging;
  if (how.mesh.size(Axis::kData) > 1 && shape.has('B')) layout[Axis::kData] = Placed::shard('B');
  // Pixels that come with a batch are cut as it is; those that are stored are whole on every rank.
  if (how.mesh.size(Axis::kData) > 1 && shape.has('R') && value.kind == ValueKind::kInput)
    layout[Axis::kData] = Placed::shard('R');
  if (how.mesh.size(Axis::kTensor) > 1 && parameter)
    for (const char dim : {'H', 'F'})
      if (shape.has(dim)) layout[Axis::kTensor] = Placed::shard(dim);
  return layout;
}

std::vector<int64_t> cuts_of(const Dim& dim, Axis axis, const Distribution& how) {
  const bool samples = dim.name == 'B' || dim.name == 'R';
  return cut_points(dim.local, how.mesh.size(axis), axis == Axis::kData && samples ? how.batch_unit : 1);
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
              strf("%lld heads cannot be shared by mesh.tp %d x mesh.sp %d ranks", static_cast<long long>(heads),
                   mesh.size(Axis::kTensor), mesh.size(Axis::kSequence)),
              "tp x sp may be " + fits);
}

}  // namespace vitrail
