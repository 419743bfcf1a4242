#include "passes/pipeline.h"

#include <set>

#include "ops/persistent.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

constexpr std::string_view kInferencePasses[] = {"record",        "gemm_precision", kPrecisionPass,
                                                 kDistributePass, "stages",         "gather",
                                                 "fuse",          "join_casts",     "schedule"};
constexpr std::string_view kMicroPasses[] = {
    "record",    "gemm_precision", "differentiate", kPrecisionPass,   kDistributePass, "stages",
    "recompute", "gather",         "keep_sums",     "join_residuals", "join_row_sums", "keep_slopes",
    "fuse",      "join_casts",     "schedule",      "group_updates"};

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

// Where masters lie on the host, a program reads copies of all its parameters.
Program lowered(PreciseProgram& precise, const Rewrites& r) {
  return r.offload ? read_copies(std::move(precise.program), precise.copies) : std::move(precise.program);
}

// Returns whether parameters and their gradients lie in flat groups, which ranks exchange or the host holds.
bool in_groups(const Rewrites& r) {
  return r.distribution.active() || r.parameters_on_host;
}

bool has_stages(const Rewrites& r) {
  return r.distribution.mesh.size(Axis::kPipeline) > 1;
}

// The sums of gradients lie in the buckets in which ranks exchange them: those of this rank's stage.
Program bucketed(Program program, const std::map<std::string, Layout>& gradients, const Rewrites& r,
                 std::vector<Bucket>& buckets) {
  buckets =
      make_buckets(program, gradients, r.bucket_bytes, r.zero == 3, r.distribution.mesh.size(Axis::kTensor));
  place_in_buckets(program, buckets);
  return program;
}

// Leaves out the copies of parameters that other stages hold.
void keep_read(std::vector<LowCopy>& copies, const Program& program) {
  std::set<std::string_view> read;
  for (const Value& value : program.values)
    if (value.persistent()) read.insert(value.name);
  std::erase_if(copies, [&](const LowCopy& copy) { return !read.contains(copy.name); });
}

// Costs are those of whole values, so that every rank cuts alike.
std::vector<int> stage_begins(const Program& program, const Rewrites& r) {
  if (!r.stages.begins.empty()) return r.stages.begins;
  return cut_by_cost(program, r.stages.shape(r.distribution.mesh).all_chunks());
}

Program staged(const Program& program, const Rewrites& r, std::vector<int> begins, StageOf what) {
  StageOptions options = r.stages;
  options.begins = std::move(begins);
  return stage_of(program, options, r.distribution.mesh, what);
}

bool makes_few_launches(const Rewrites& r) {
  return r.traits.few_launches && r.fuse;
}

// A smaller GEMM stays exact. Programs are recorded with the rows of all ranks.
LeastGemm least_size(const Rewrites& r) {
  if (r.arithmetic != Arithmetic::kFp8) return {};
  return {.rows = r.traits.fp8_rows * r.distribution.mesh.size(Axis::kData)};
}
LeastGemm least_trained_size(const Rewrites& r) {
  LeastGemm least = least_size(r);
  if (r.arithmetic == Arithmetic::kFp8) least.width = r.traits.fp8_trained_width;
  return least;
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
  p.pass("gemm_precision", gemm_precision(p.take(), r.arithmetic, least_size(r)));
  PreciseProgram precise = precision(p.take(), r.precision);
  p.pass(kPrecisionPass, lowered(precise, r));
  const std::vector<int> begins = has_stages(r) ? stage_begins(p.program(), r) : std::vector<int>{};
  p.pass(kDistributePass, r.distribution.active() ? distribute(p.take(), r.distribution).program : p.take());
  p.pass("stages", has_stages(r) ? staged(p.take(), r, begins, StageOf::kBatch) : p.take());
  p.pass("gather", zero.active() ? gather_parameters(p.take(), zero, sample_rank(r)) : p.take());
  p.pass("fuse", r.fuse ? fuse(p.take(), r.traits) : p.take());
  p.pass("join_casts", makes_few_launches(r) ? join_casts(p.take()) : p.take());
  p.pass("schedule", schedule(p.take()));
  return p.finish();
}

MicroProgram micro_program(Program recorded, const DifferentiateOptions& descent, const Rewrites& r,
                           const AfterPass& after) {
  const bool few_launches = makes_few_launches(r);
  Pipeline p(kMicroPasses, std::move(recorded), after);
  p.pass("gemm_precision", gemm_precision(p.take(), r.arithmetic, least_trained_size(r)));
  p.pass("differentiate", differentiate(p.take(), descent));
  PreciseProgram precise = precision(p.take(), r.precision);
  p.pass(kPrecisionPass, lowered(precise, r));
  const std::vector<int> begins = has_stages(r) ? stage_begins(p.program(), r) : std::vector<int>{};
  std::vector<Bucket> buckets;
  Distributed own =
      r.distribution.active() ? distribute(p.take(), r.distribution) : Distributed{p.take(), {}};
  p.pass(kDistributePass, std::move(own.program));
  Program stage = has_stages(r) ? staged(p.take(), r, begins, StageOf::kUpdate) : p.take();
  if (has_stages(r)) keep_read(precise.copies, stage);
  p.pass("stages", in_groups(r) ? bucketed(std::move(stage), own.gradients, r, buckets) : std::move(stage));
  p.pass("recompute", recompute(p.take(), r.recompute));
  const int level = r.distribution.mesh.size(Axis::kData) > 1 || r.parameters_on_host ? r.zero : 0;
  const std::vector<Bucket> frozen =
      level == 3 ? frozen_buckets(p.program(), buckets, precise.copies) : std::vector<Bucket>{};
  ZeroPlan zero(buckets, frozen, r.distribution.mesh,
                {level, precise.copies, r.averages, r.whole_sums, level == 3 && r.parameters_on_host});
  p.pass("gather", zero.active() ? gathered(p.take(), r, buckets, zero) : p.take());
  p.pass("keep_sums", few_launches ? keep_attention_sums(p.take(), r.has_kernel) : p.take());
  p.pass("join_residuals", r.join ? join_residuals(p.take()) : p.take());
  p.pass("join_row_sums", few_launches ? join_row_sums(p.take(), r.has_kernel) : p.take());
  p.pass("keep_slopes", few_launches ? keep_slopes(p.take(), r.has_kernel) : p.take());
  p.pass("fuse", r.fuse ? fuse(p.take(), r.traits, few_launches ? r.has_kernel : KernelRule()) : p.take());
  p.pass("join_casts", few_launches ? join_casts(p.take()) : p.take());
  p.pass("schedule", schedule(p.take()));
  p.pass("group_updates", few_launches ? group_updates(p.take(), is_gradient_sum, GroupAt::kLast) : p.take());
  return {p.finish(), std::move(precise.copies), std::move(buckets), std::move(zero), begins};
}

Program update_program(Program recorded, const Rewrites& r, const std::vector<Bucket>& buckets,
                       const ZeroPlan& zero) {
  if (r.distribution.active()) recorded = distribute_update(recorded, r.distribution, buckets, zero);
  if (r.traits.groups)
    recorded = group_updates(join_copies(std::move(recorded), r.traits.groups), r.traits.groups);
  check_exchanges(recorded);
  return recorded;
}

UpdateParts update_parts(const Program& recorded, const Rewrites& r, const std::vector<Bucket>& buckets,
                         const ZeroPlan& zero) {
  UpdateParts parts =
      split_update(in_groups(r) ? distribute_update(recorded, r.distribution, buckets, zero) : recorded);
  for (const Program* program : {&parts.control, &parts.host, &parts.gather}) check_exchanges(*program);
  return parts;
}

Program last_micro_program(const MicroProgram& micro, const Rewrites& r) {
  if (micro.zero.shares_gradients()) return micro.program;
  const Mesh& mesh = r.distribution.mesh;
  const Program stage = has_stages(r) ? unrolled(micro.program, turns_of(pipeline_turns(r.stages.shape(mesh)),
                                                                         mesh.coordinate(Axis::kPipeline)))
                                      : Program();
  Program program =
      reduce_gradients(has_stages(r) ? stage : micro.program, micro.buckets, mesh, micro.zero.active());
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
