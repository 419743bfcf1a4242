#include "passes/precision.h"

#include <algorithm>
#include <map>

#include "ops/cast.h"
#include "ops/make_pictures.h"

namespace vitrail {

namespace {

// Read and write the compute type; what they make from it for parameters is f32 by their own rule.
constexpr std::string_view kLow[] = {"linear",         "linear_dx", "linear_dw",     "patch_embed",
                                     "patch_embed_dw", "attention", "attention_grad"};
constexpr std::string_view kFull[] = {"cross_entropy", "cross_entropy_grad", "accumulate", "scale_by"};
// Products whose second input is a weight.
constexpr std::string_view kWeighted[] = {"linear", "linear_dx", "patch_embed"};

template <size_t N>
bool among(const std::string_view (&list)[N], std::string_view kind) {
  return std::find(std::begin(list), std::end(list), kind) != std::end(list);
}

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
    const std::string_view kind = node.op->kind();
    // Products alone read pictures.
    if (kind == "make_pictures") copy.op = std::make_shared<MakePicturesOp>(options_.compute);
    for (size_t i = 0; i < copy.ins.size(); ++i) {
      ValueId& in = copy.ins[i];
      in = now_[in];
      if (!is_float(desc(in).dtype)) continue;
      if (among(kFull, kind) && desc(in).dtype == options_.compute) in = in_type(in, DType::kF32, &node);
      if (!options_.keep_masters && kind == "bias" && i == 1 && desc(copy.ins[0]).dtype == options_.compute &&
          out_program().values[in].kind == ValueKind::kParameter)
        in = lowered(in);
      if (among(kLow, kind)) in = low(in, i == 1 && among(kWeighted, kind), node);
      if (kind == "gelu_grad" || kind == "tanh_grad") in = in_type(in, desc(copy.ins[0]).dtype, &node);
    }
    const std::vector<TensorDesc> inferred = copy.op->infer(out_program().descs(copy.ins));
    for (size_t o = 0; o < node.outs.size(); ++o) out_program().values[node.outs[o]].desc = inferred[o];
    out_program().nodes.push_back(std::move(copy));
    if (joins_stream(node)) now_[node.outs[0]] = in_type(node.outs[0], options_.residual, &node);
  }

  // Where the residual stream begins: after the positions. Every add keeps the wider type from there on.
  static bool joins_stream(const Node& node) { return node.name == "pos_embed" || node.name == "tokens"; }

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
      result_.copies.emplace_back(copy.name, copy.name + "@" + to_string(options_.compute));
      copy.name = result_.copies.back().second;
      copy.desc.dtype = options_.compute;
      copy.kind = ValueKind::kState;
      out_program().values.push_back(std::move(copy));
    }
    return found->second;
  }

  // The value in another type; a cast is made once and remembered.
  ValueId in_type(ValueId id, DType dtype, const Node* node) {
    if (desc(id).dtype == dtype || !is_float(desc(id).dtype)) return id;
    const auto [found, fresh] = casts_.try_emplace({id, dtype}, -1);
    if (!fresh) return found->second;
    Node cast{.op = std::make_shared<CastOp>(dtype),
              .ins = {id},
              .outs = {static_cast<ValueId>(out_program().values.size())},
              .name = out_program().values[id].name + "." + to_string(dtype),
              .phase = node ? node->phase : Phase::kForward,
              .where = node ? node->where : SourceLine{}};
    out_program().values.push_back({cast.name, {dtype, desc(id).shape}, ValueKind::kComputed});
    found->second = cast.outs[0];
    out_program().nodes.push_back(std::move(cast));
    return found->second;
  }

  const Program& source_;
  PrecisionOptions options_;
  PreciseProgram result_;
  std::vector<ValueId> now_;  // by value of the source: what stands for it
  std::map<ValueId, ValueId> copies_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

}  // namespace

PreciseProgram precision(const Program& program, const PrecisionOptions& options) {
  if (options.compute == DType::kF32 || options.compute == DType::kF64) return {program, {}};
  return Lowering(program, options).run();
}

}  // namespace vitrail
