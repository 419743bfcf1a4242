#include "passes/precision.h"

#include <map>

#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/elementwise.h"
#include "ops/make_images.h"

namespace vitrail {

namespace {

class Lowering {
 public:
  Lowering(const Program& program, const PrecisionOptions& options) : source_(program), options_(options) {
    result_.program.values = program.values;
    now_.resize(program.values.size());
    for (size_t id = 0; id < now_.size(); ++id) now_[id] = static_cast<ValueId>(id);
  }

  PreciseProgram run() {
    for (const Node& node : source_.nodes) visit(node);
    for (const Output& out : source_.outputs)
      out_program().outputs.push_back({out.name, in_type(now_[out.value], DType::kF32, nullptr)});
    out_program().validate();
    return std::move(result_);
  }

 private:
  Program& out_program() { return result_.program; }
  const TensorDesc& desc(ValueId id) { return out_program().values[id].desc; }

  void visit(const Node& node) {
    Node copy = node;
    const PrecisionRole role = node.op->precision_role();
    // Only GEMMs read images, so they are made in the compute type.
    if (is<MakeImagesOp>(*node.op)) copy.op = std::make_shared<MakeImagesOp>(options_.compute);
    for (size_t i = 0; i < copy.ins.size(); ++i) {
      ValueId& in = copy.ins[i];
      in = now_[in];
      if (!is_float(desc(in).dtype)) continue;
      if (role == PrecisionRole::kFull && desc(in).dtype == options_.compute)
        in = in_type(in, DType::kF32, &node);
      if (role == PrecisionRole::kCompute) in = low(in, static_cast<int>(i) == node.op->weight_input(), node);
      if (role == PrecisionRole::kLikeFirst) in = in_type(in, desc(copy.ins[0]).dtype, &node);
    }
    if (is<BiasOp>(*node.op) && !options_.keep_masters && desc(copy.ins[0]).dtype == options_.compute &&
        out_program().values[copy.ins[1]].kind == ValueKind::kParameter)
      lowered(copy.ins[1]);
    const std::vector<TensorDesc> inferred = copy.op->infer(out_program().descs(copy.ins));
    for (size_t o = 0; o < node.outs.size(); ++o) out_program().values[node.outs[o]].desc = inferred[o];
    out_program().nodes.push_back(std::move(copy));
    if (joins_stream(node)) now_[node.outs[0]] = in_type(node.outs[0], options_.residual, &node);
  }

  // Returns whether the residual stream begins here, after the positions. Every add keeps the wider type from
  // there on.
  static bool joins_stream(const Node& node) {
    return node.part == ModelPart::kTokens && node.phase == Phase::kForward &&
           is<BiasOp, ConcatTokensOp>(*node.op);
  }

  ValueId low(ValueId id, bool weight, const Node& node) {
    const Value& value = out_program().values[id];
    if (weight && value.kind == ValueKind::kParameter)
      return options_.keep_masters ? low_copy(id) : lowered(id);
    return in_type(id, options_.compute, &node);
  }

  ValueId lowered(ValueId weight) {
    out_program().values[weight].desc.dtype = options_.compute;
    return weight;
  }

  ValueId low_copy(ValueId master) {
    const auto [found, fresh] =
        copies_.try_emplace(master, static_cast<ValueId>(out_program().values.size()));
    if (fresh) {
      Value copy = out_program().values[master];
      result_.copies.push_back(low_copy_of(copy.name, options_.compute));
      copy.name = result_.copies.back().name;
      copy.desc.dtype = options_.compute;
      copy.kind = ValueKind::kState;
      out_program().values.push_back(std::move(copy));
    }
    return found->second;
  }

  // Returns the value in another type; a cast is recorded once and reused.
  ValueId in_type(ValueId id, DType dtype, const Node* node) {
    if (desc(id).dtype == dtype || !is_float(desc(id).dtype)) return id;
    const auto [found, fresh] = casts_.try_emplace({id, dtype}, -1);
    if (!fresh) return found->second;
    const std::vector<ValueId> cast = out_program().append(
        {.op = std::make_shared<CastOp>(dtype),
         .ins = {id},
         .outs = {},
         .name = out_program().values[id].name + "." + to_string(dtype),
         .phase = node ? node->phase : Phase::kForward,
         .block = node ? node->block : -1,
         .part = node ? node->part : ModelPart::kNone,
         .step = step_between(out_program().values[id], node ? node->step : ModelStep::kNone),
         .where = node ? node->where : SourceLine{}});
    return found->second = cast.front();
  }

  const Program& source_;
  PrecisionOptions options_;
  PreciseProgram result_;
  std::vector<ValueId> now_;  // by value of the source: its replacement
  std::map<ValueId, ValueId> copies_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

}  // namespace

PreciseProgram precision(Program program, const PrecisionOptions& options) {
  if (options.compute == DType::kF32 || options.compute == DType::kF64) return {std::move(program), {}};
  return Lowering(program, options).run();
}

}  // namespace vitrail
