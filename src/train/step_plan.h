// A training step before it runs: the micro program (forward, backward, gradient sums), the update program,
// the programs that evaluate, and one memory plan over all of them. Allocates nothing.
#pragma once

#include <functional>
#include <optional>

#include "base/free_memory.h"
#include "passes/pipeline.h"
#include "plan/device_file.h"
#include "plan/kernel_choice.h"
#include "plan/memory_table.h"
#include "train/offload_plan.h"
#include "train/step_config.h"

namespace vitrail {

// Persistent values that hold data, not state, for steps that make their images from pixels: the normalised
// value of each 8-bit level, f32 [C 256], and for kStored every image, u8 [R Y X C].
inline constexpr const char* kImageLevels = "data/levels";
inline constexpr const char* kStoredPixels = "data/pixels";

// Sums of the losses since take_loss() last reset them: f64, one for each sample of the micro-batch.
inline constexpr const char* kLossSums = "loss/sums";

struct StepPlan {
  StepConfig config;
  std::shared_ptr<PersistentLayout> layout;
  ExecutionPlan micro, update, eval;        // with an offload, update is its control alone
  std::optional<ExecutionPlan> last_micro;  // the same with the sums over ranks, where there are several
  bool pipelined = false;  // micro holds the turns of all micro-batches of an update; there is no last one
  std::optional<ExecutionPlan> eval_average;  // the same with the moving average of the weights
  std::optional<ExecutionPlan> refresh;       // fills the low-precision copies from the masters
  std::optional<OffloadPlan> offload;         // what updates, fills and evaluates averages instead
  // Bytes of the prefetch buffer, where the images of the next micro-batch arrive while this one computes; 0:
  // images are read in place, or kept on the device.
  size_t prefetch_bytes = 0;
  uint64_t recorded = 0;  // a hash of the micro program before it is cut among ranks; 0: there is one rank

  // Returns the size of the one transient arena, in which the programs take turns.
  size_t transient_bytes() const;
  // Returns the bytes of staged inputs; the programs that read images share one place for them.
  size_t image_staging_bytes() const;
  size_t staging_bytes() const;
  // Returns the bytes of the device's memory; a device that shares the host's has what lies there, too.
  size_t peak_bytes() const;
  // Returns the bytes that an offload takes of the host's memory, and the part of them that is page-locked.
  size_t host_bytes() const;
  size_t page_locked_bytes() const;
  NamedBytes host_rows() const;
  // Returns bytes by category; transient categories as of the peak of the program that needs most.
  std::array<size_t, kCategoryCount> by_category() const;
  size_t lower_bound_bytes() const;
  // Returns every category, the cost of alignment, and the memory beside the step: rows that add up to the
  // peak.
  NamedBytes memory_rows(const NamedBytes& beside) const;

  // Those of the device.
  std::vector<const ExecutionPlan*> programs() const;
  // The turns of all stages; empty: there is one.
  std::vector<PipelineTurn> turns() const;
  // The share of an update in which the stage that computes most does so: while a pipeline fills and drains
  // it waits.
  double busy_share() const;
  // Predicts the seconds of an update of so many micro-batches, node by node; what ranks exchange is not in
  // it.
  double update_seconds(int64_t accumulation, const DeviceFile& device) const;
  bool averages() const { return config.optim.ema_decay > 0; }

 private:
  size_t shared_host_bytes() const;
};

// Records the micro program and the low-precision copies of weights that it reads.
MicroProgram record_micro(const StepConfig& config, const RewriteTraits& traits, const AfterPass& after = {},
                          const KernelRule& has_kernel = {});

StepPlan plan_step(const StepConfig& config, const Backend& backend, const DeviceInfo& device);

// The collectives of an update by kind and axes, counted on the programs that run, so that none is forgotten.
struct CollectiveRow {
  std::string kind, axes;
  int64_t count = 0;     // an update
  double bytes = 0;      // that one rank sends an update
  bool is_send = false;  // what one stage of a pipeline hands to the next
};

// The pins of a step's mesh, one a line.
std::string pins_text(const StepConfig& config);

// Returns those of an update of `accumulation` micro-batches.
std::vector<CollectiveRow> collective_rows(const StepPlan& plan, int64_t accumulation);
// Returns those of one run of any program.
std::vector<CollectiveRow> collective_rows(const Program& program, const Mesh& mesh);

// The name of the row for decoding.
inline constexpr const char* kDecodingRow = "images being decoded";

// Returns the memory held beside a step of this micro-batch.
using Beside = std::function<NamedBytes(int64_t micro_batch)>;

// The same step with an offload, what gives less room first: the optimizer's, then the parameters', each
// alone and with whole blocks computed again. Those that the step has already, or that do not go with it, are
// left out; where one makes it fit, the ones behind it cost more for nothing.
struct OffloadChoice {
  std::string settings;
  StepConfig config;
};
std::vector<OffloadChoice> offload_choices(const StepConfig& own);

// Throws Error(kMemory) with the memory table and what would fit (micro-batch and accumulation, recompute
// levels) when the step, together with what is held `beside` it, is larger than what is `available`.
// Micro-batches are advised in multiples of `batch_unit`.
void require_step_fits(const StepPlan& plan, const Beside& beside, const FreeMemory& available,
                       int64_t batch_unit = 1);

// Throws Error(kMemory) with the table of the host's memory when what an offload keeps there, beside the
// images being loaded, is more than is free; `sharing` ranks take as much.
void require_host_room(const StepPlan& plan, size_t loading_bytes, int sharing = 1,
                       const FreeMemory& free = free_memory());

}  // namespace vitrail
