#include "passes/pipeline.h"

#include "ops/persistent.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

constexpr std::string_view kInferencePasses[] = {"record", "gemm_precision", "precision", "distribute",
                                                 "gather", "fuse",           "schedule"};
constexpr std::string_view kMicroPasses[] = {
    "record", "gemm_precision", "differentiate", "precision", "distribute", "recompute",
    "gather", "join_residuals", "join_row_sums", "fuse",      "schedule",   "group_updates"};

// Runs a program through a list of passes and checks that each pass is the next of the list.
class Pipeline {
 public:
  Pipeline(std::span<const std::string_view> passes, Program recorded, const AfterPass& after)
      : passes_(passes), after_(after) {
    pass("record", std::move(recorded));
  }

  void pass(std::string_view name, Program result) {
    VT_CHECK(done_ < passes_.size() && passes_[done_] == name, "%s is not the next pass",
             std::string(name).c_str());
    ++done_;
    program_ = std::move(result);
    if (after_) after_(name, program_);
  }

  const Program& program() const { return program_; }
  // Moves the program out, for the next pass to rewrite.
  Program take() { return std::move(program_); }

  Program finish() {
    VT_CHECK(done_ == passes_.size(), "a pass was left out");
    check_exchanges(program_);
    return take();
  }

 private:
  std::span<const std::string_view> passes_;
  const AfterPass& after_;
  size_t done_ = 0;
  Program program_;
};

bool is_gradient_sum(std::string_view kind) {
  return kind == AccumulateOp::kKind;
}

// Types are settled and nothing is fused yet.
Program distributed(const Program& program, const Rewrites& r, std::vector<Bucket>& buckets) {
  Distributed result = distribute(program, r.distribution);
  buckets = make_buckets(result.program, result.gradients, r.bucket_bytes, r.zero == 3);
  place_in_buckets(result.program, buckets);
  return std::move(result.program);
}

int sample_rank(const Rewrites& r) {
  return r.distribution.mesh.coordinate(Axis::kData);
}

// Runs after recompute, so that what is computed again reads what the backward half gathers.
Program gathered(Program program, const Rewrites& r, const std::vector<Bucket>& buckets,
                 const ZeroPlan& zero) {
  program = gather_parameters(program, zero, sample_rank(r));
  return zero.shares_gradients() ? scatter_gradients(program, buckets, r.distribution.mesh) : program;
}

}  // namespace

Program inference_program(Program recorded, const Rewrites& r, const AfterPass& after, const ZeroPlan& zero) {
  Pipeline p(kInferencePasses, std::move(recorded), after);
  p.pass("gemm_precision", gemm_precision(p.take(), r.arithmetic));
  p.pass("precision", precision(p.take(), r.precision).program);
  p.pass("distribute", r.distribution.active() ? distribute(p.take(), r.distribution).program : p.take());
  p.pass("gather", zero.active() ? gather_parameters(p.take(), zero, sample_rank(r)) : p.take());
  p.pass("fuse", r.fuse ? fuse(p.take(), r.traits) : p.take());
  p.pass("schedule", schedule(p.take()));
  return p.finish();
}

MicroProgram micro_program(Program recorded, const DifferentiateOptions& descent, const Rewrites& r,
                           const AfterPass& after) {
  const bool few_launches = r.traits.few_launches && r.fuse;
  Pipeline p(kMicroPasses, std::move(recorded), after);
  p.pass("gemm_precision", gemm_precision(p.take(), r.arithmetic));
  p.pass("differentiate", differentiate(p.take(), descent));
  PreciseProgram precise = precision(p.take(), r.precision);
  p.pass("precision", std::move(precise.program));
  std::vector<Bucket> buckets;
  p.pass("distribute", r.distribution.active() ? distributed(p.take(), r, buckets) : p.take());
  p.pass("recompute", recompute(p.take(), r.recompute));
  const int stage = r.distribution.mesh.size(Axis::kData) > 1 ? r.zero : 0;
  const std::vector<Bucket> frozen =
      stage == 3 ? frozen_buckets(p.program(), buckets, precise.copies) : std::vector<Bucket>{};
  ZeroPlan zero(buckets, frozen, r.distribution.mesh, {stage, precise.copies, r.averages, r.whole_sums});
  p.pass("gather", zero.active() ? gathered(p.take(), r, buckets, zero) : p.take());
  p.pass("join_residuals", r.join ? join_residuals(p.take()) : p.take());
  p.pass("join_row_sums", few_launches ? join_row_sums(p.take()) : p.take());
  p.pass("fuse", r.fuse ? fuse(p.take(), r.traits) : p.take());
  p.pass("schedule", schedule(p.take()));
  p.pass("group_updates", few_launches ? group_updates(p.take(), is_gradient_sum, GroupAt::kLast) : p.take());
  return {p.finish(), std::move(precise.copies), std::move(buckets), std::move(zero)};
}

Program update_program(Program recorded, const Rewrites& r, const std::vector<Bucket>& buckets,
                       const ZeroPlan& zero) {
  if (r.distribution.active()) recorded = distribute_update(recorded, r.distribution, buckets, zero);
  if (r.traits.groups) recorded = group_updates(recorded, r.traits.groups);
  check_exchanges(recorded);
  return recorded;
}

Program last_micro_program(const MicroProgram& micro, const Rewrites& r) {
  if (micro.zero.shares_gradients()) return micro.program;
  Program program = reduce_gradients(micro.program, micro.buckets, r.distribution.mesh, micro.zero.active());
  check_exchanges(program);
  return program;
}

std::span<const std::string_view> inference_passes() {
  return kInferencePasses;
}
std::span<const std::string_view> micro_passes() {
  return kMicroPasses;
}

}  // namespace vitrail
