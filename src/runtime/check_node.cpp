#include "runtime/check_node.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/kernels.h"
#include "ops/fused.h"
#include "ops/many.h"
#include "plan/tolerance.h"

namespace vitrail {

NodeCheck::NodeCheck(const Node& node, const Program& program, RankContext& rank)
    : node_(node), program_(program), rank_(rank) {}

void NodeCheck::add_input(const TensorView& view) {
  ins_.push_back(copy(view, rank_));
}

TensorView NodeCheck::copy(const TensorView& view, RankContext& owner) {
  copies_.emplace_back(view.desc().bytes(), Category::kScratch);
  owner.hardware->download(copies_.back().data(), view.data(), view.desc().bytes());
  return {copies_.back().data(), view.desc()};
}

void NodeCheck::add_persistent(const TensorView& plain, RankContext& owner) {
  const std::vector<int> updated = node_.op->updates();
  const bool shared = owner.hardware->shares_host_memory();
  if (!shared || std::find(updated.begin(), updated.end(), static_cast<int>(ins_.size())) != updated.end())
    ins_.push_back(copy(plain, owner));
  else
    ins_.push_back(plain);
}

std::vector<TensorView> NodeCheck::run_reference(const Op& op, std::vector<TensorView> ins) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    std::vector<TensorView> results, last;
    for (const FusedOp::Member& member : fused->members()) {
      std::vector<TensorView> member_ins;
      for (int source : member.sources) member_ins.push_back(source >= 0 ? ins[source] : results[~source]);
      last = run_reference(*member.op, std::move(member_ins));
      if (!last.empty()) results.push_back(last[0]);
    }
    return last;
  }
  if (const auto* many = dynamic_cast<const ManyOp*>(&op)) {
    for (const ManyOp::Part& part : many->parts()) {
      const auto from = ins.begin() + static_cast<std::ptrdiff_t>(part.first);
      run_reference(*part.op, {from, from + static_cast<std::ptrdiff_t>(part.count)});
    }
    return {};
  }
  std::vector<TensorDesc> descs;
  for (const TensorView& in : ins) descs.push_back(in.desc());
  const std::vector<TensorDesc> outs = op.infer(descs);
  std::vector<TensorView> views;
  for (const TensorDesc& out : outs) {
    copies_.emplace_back(out.bytes(), Category::kScratch);
    views.emplace_back(copies_.back().data(), out);
  }
  const Choice choice = ref_backend().choose({op, descs, outs}, rank_.device);
  choice.kernel->run({op, ins, views, {}, {rank_.pool, rank_.device}});
  return views;
}

void NodeCheck::run() {
  if (!ran_) outs_ = run_reference(*node_.op, ins_);
  ran_ = true;
}

void NodeCheck::compare_output(size_t output, const TensorView& found) {
  run();
  compare(outs_[output], copy(found, rank_));
}

void NodeCheck::compare_updated(int input, const TensorView& found) {
  run();
  compare(ins_[static_cast<size_t>(input)], copy(found, rank_));
}

void NodeCheck::compare(const TensorView& expected, const TensorView& found) const {
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
  const Tolerance tolerance = tolerance_of(*node_.op, program_.descs(node_.ins), found.dtype());
  if (largest <= tolerance.relative * scale + tolerance.absolute) return;
  throw Error(
      ErrorKind::kCheck,
      strf("%s differs from the reference by %g (largest value %g, allowed %g)\n  %s\n  recorded at %s:%d",
           node_.name.c_str(), largest, scale, tolerance.relative * scale + tolerance.absolute,
           to_string(node_, program_).c_str(), node_.where.file, node_.where.line));
}

}  // namespace vitrail
