#include "runtime/check_node.h"

#include <cmath>
#include <cstring>

#include "backend/ref/kernels.h"
#include "ops/fused.h"
#include "plan/tolerance.h"

namespace vitrail {

NodeCheck::NodeCheck(const Node& node, const Program& program, RankContext& rank)
    : node_(node), program_(program), rank_(rank) {}

void NodeCheck::add_input(const TensorView& view) {
  copies_.emplace_back(view.desc().bytes(), Category::kScratch);
  std::memcpy(copies_.back().data(), view.data(), view.desc().bytes());
  ins_.emplace_back(copies_.back().data(), view.desc());
}

TensorView NodeCheck::run_reference(const Op& op, std::vector<TensorView> ins) {
  std::vector<TensorDesc> descs;
  for (const TensorView& in : ins) descs.push_back(in.desc());
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    std::vector<TensorView> results;
    for (const FusedOp::Member& member : fused->members()) {
      std::vector<TensorView> member_ins;
      for (int source : member.sources) member_ins.push_back(source >= 0 ? ins[source] : results[~source]);
      results.push_back(run_reference(*member.op, std::move(member_ins)));
    }
    return results.back();
  }
  const std::vector<TensorDesc> outs = op.infer(descs);
  copies_.emplace_back(outs[0].bytes(), Category::kScratch);
  const TensorView out(copies_.back().data(), outs[0]);
  const Choice choice = ref_backend().choose({op, descs, outs}, rank_.device);
  choice.kernel->run({op, ins, {&out, 1}, {}, {rank_.pool, rank_.device}});
  return out;
}

void NodeCheck::compare(const TensorView& found) {
  const TensorView expected = run_reference(*node_.op, ins_);
  const auto count = static_cast<size_t>(found.desc().elems());
  std::vector<double> a(count), b(count);
  convert_floats(found.data(), found.dtype(), a.data(), DType::kF64, count);
  convert_floats(expected.data(), expected.dtype(), b.data(), DType::kF64, count);
  double largest = 0, scale = 0;
  for (size_t i = 0; i < count; ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
    scale = std::max(scale, std::abs(b[i]));
  }
  const Tolerance tolerance =
      tolerance_of(found.dtype(), reduction_length(*node_.op, program_.descs(node_.ins)));
  if (largest <= tolerance.relative * scale + tolerance.absolute) return;
  throw Error(
      ErrorKind::kCheck,
      strf("%s differs from the reference by %g (largest value %g, allowed %g)\n  %s\n  recorded at %s:%d",
           node_.name.c_str(), largest, scale, tolerance.relative * scale + tolerance.absolute,
           to_string(node_, program_).c_str(), node_.where.file, node_.where.line));
}

}  // namespace vitrail
