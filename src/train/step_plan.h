// A training step before it runs: the micro program (forward, backward, gradient sums), the update program,
// the programs that evaluate, and one memory plan over all of them. Used by the trainer, which runs it, and
// by `plan`, which shows it.
#pragma once

#include <functional>
#include <optional>

#include "base/free_memory.h"
#include "passes/pipeline.h"
#include "plan/kernel_choice.h"
#include "plan/memory_table.h"
#include "train/step_config.h"

namespace vitrail {

// Persistent values of steps that make their images from pixels, which the data fills, not the run: what
// normalisation makes of each level, f32 [C 256], and of kStored every image, u8 [R Y X C].
inline constexpr const char* kImageLevels = "data/levels";
inline constexpr const char* kStoredPixels = "data/pixels";

// Of the losses since they were last taken: one sum, f64, a place of the micro-batch.
inline constexpr const char* kLossSums = "loss/sums";

struct StepPlan {
  StepConfig config;
  std::shared_ptr<PersistentLayout> layout;
  ExecutionPlan micro, update, eval;
  std::optional<ExecutionPlan> eval_average;  // the same with the moving average of the weights
  std::optional<ExecutionPlan> refresh;       // fills the low-precision copies from the masters
  // Where the images of the next micro-batch arrive while this one computes; 0: they are read in place, or
  // kept on the device.
  size_t landing_bytes = 0;

  // The programs take turns in one transient arena.
  size_t transient_bytes() const;
  // Inputs with places of their own; those of the programs that read images share one.
  size_t image_staging_bytes() const;
  size_t staging_bytes() const;
  size_t peak_bytes() const { return layout->bytes() + staging_bytes() + transient_bytes(); }
  // By category; transient categories as they stand at the peak of the program that needs most.
  std::array<size_t, kCategoryCount> by_category() const;
  size_t lower_bound_bytes() const;
  // Every category, what alignment costs, and what is held beside the step: rows that add up to the peak.
  NamedBytes memory_rows(const NamedBytes& beside) const;

  std::vector<const ExecutionPlan*> programs() const;
};

// The micro program and the low-precision copies of weights it reads.
PreciseProgram record_micro(const StepConfig& config, const RewriteTraits& traits,
                            const AfterPass& after = {});

StepPlan plan_step(const StepConfig& config, const Backend& backend, const DeviceInfo& device);

// The row of what decoding takes.
inline constexpr const char* kDecodingRow = "images being decoded";

// What is held beside a step of this micro-batch.
using Beside = std::function<NamedBytes(int64_t micro_batch)>;

// Throws Error(kMemory) with the memory table and what would fit (micro-batch and accumulation, recompute
// levels) when the step, together with what is held `beside` it, is larger than what is `available`.
// Micro-batches are advised in multiples of `batch_unit`.
void require_step_fits(const StepPlan& plan, const Beside& beside, const FreeMemory& available,
                       int64_t batch_unit = 1);

}  // namespace vitrail
