#include "runtime/check/check_node.h"

#include <algorithm>

#include "backend/ref/kernels.h"
#include "ops/fused.h"
#include "ops/grouped.h"
#include "ops/make_images.h"

namespace vitrail {

NodeCheck::NodeCheck(const Node& node, const Program& program, Rounding rounding, RankContext& rank)
    : node_(node), program_(program), rounding_(rounding), rank_(rank) {}

void NodeCheck::add_input(const TensorView& view) {
  ins_.push_back(copy(view, rank_));
}

TensorView NodeCheck::copy(const TensorView& view, RankContext& owner) {
  copies_.emplace_back(view.desc().bytes(), Category::kScratch);
  owner.hardware->download(copies_.back().data(), view.data(), view.desc().bytes());
  return {copies_.back().data(), view.desc()};
}

void NodeCheck::add_persistent(const TensorView& plain, RankContext& owner) {
  const std::span<const int> updated = node_.op->updates();
  const bool shared = owner.hardware->shares_host_memory();
  if (!shared || std::find(updated.begin(), updated.end(), static_cast<int>(ins_.size())) != updated.end())
    ins_.push_back(copy(plain, owner));
  else
    ins_.push_back(plain);
}

// Returns the view in f64. Inputs read bit by bit, such as the recipes of images, are not converted.
TensorView NodeCheck::widened(const TensorView& view) {
  const bool as_it_is = dynamic_cast<const MakeImagesOp*>(node_.op.get()) != nullptr;
  if (as_it_is || !is_float(view.dtype()) || view.dtype() == DType::kF64) return view;
  const TensorDesc desc{DType::kF64, view.shape()};
  copies_.emplace_back(desc.bytes(), Category::kScratch);
  convert_floats(view.data(), view.dtype(), copies_.back().data(), DType::kF64,
                 static_cast<size_t>(desc.elems()));
  return {copies_.back().data(), desc};
}

std::vector<TensorView> NodeCheck::run_reference(const Op& op, std::vector<TensorView> ins) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    std::vector<TensorView> results, last;
    for (const FusedOp::Member& member : fused->members()) {
      std::vector<TensorView> member_ins;
      for (const FusedOp::Source& source : member.sources) member_ins.push_back(source.pick(ins, results));
      last = run_reference(*member.op, std::move(member_ins));
      if (!last.empty()) results.push_back(last[0]);
    }
    if (fused->kept() != FusedOp::kNone) last.push_back(results[static_cast<size_t>(fused->kept())]);
    return last;
  }
  if (const auto* grouped = dynamic_cast<const GroupedOp*>(&op)) {
    for (const GroupedOp::Part& part : grouped->parts()) {
      const auto from = ins.begin() + static_cast<std::ptrdiff_t>(part.first);
      run_reference(*part.op, {from, from + static_cast<std::ptrdiff_t>(part.count)});
    }
    return {};
  }
  std::vector<TensorDesc> descs;
  descs.reserve(ins.size());
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

namespace {

Values doubles_of(const TensorView& view) {
  Values values(static_cast<size_t>(view.desc().elems()));
  if (is_float(view.dtype()))
    convert_floats(view.data(), view.dtype(), values.data(), DType::kF64, values.size());
  return values;
}

std::vector<Known> known(const std::vector<TensorView>& views) {
  std::vector<Known> all;
  all.reserve(views.size());
  for (const TensorView& view : views) all.push_back({view.shape(), doubles_of(view)});
  return all;
}

}  // namespace

std::vector<Known> NodeCheck::expected(const std::vector<DType>& types) {
  std::vector<TensorView> ins;
  for (const TensorView& in : ins_) ins.push_back(widened(in));
  const std::vector<Known> before = known(ins);
  std::vector<TensorView> results = run_reference(*node_.op, ins);
  for (int input : node_.op->updates()) results.push_back(ins[static_cast<size_t>(input)]);
  std::vector<Known> wanted = known(results);
  const std::vector<TensorDesc> descs = program_.descs(node_.ins);
  const NoiseQuery query{*node_.op, descs, before, rounding_, rank_.pool};
  std::vector<Noise> noise = result_noise(query, wanted, types);
  for (size_t r = 0; r < wanted.size(); ++r) wanted[r].noise = std::move(noise[r]);
  return wanted;
}

void NodeCheck::compare(const std::vector<TensorView>& found) {
  std::vector<DType> types;
  types.reserve(found.size());
  for (const TensorView& view : found) types.push_back(view.dtype());
  const std::vector<Known> wanted = expected(types);
  for (size_t r = 0; r < found.size(); ++r) expect_near(wanted[r], copy(found[r], rank_));
}

void NodeCheck::expect_near(const Known& wanted, const TensorView& found) {
  const Verdict verdict = judge(wanted, doubles_of(found));
  if (verdict.share <= 1) return;
  throw Error(ErrorKind::kCheck,
              strf("%s differs from the reference by %.3g times what its roundings allow: %s\n  %s\n"
                   "  recorded at %s:%d",
                   node_.name.c_str(), verdict.share, verdict.where.c_str(),
                   to_string(node_, program_).c_str(), node_.where.file, node_.where.line));
}

}  // namespace vitrail
