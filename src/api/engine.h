// A model ready to run: its model card, its execution plan, its parameters and an executor for one batch
// size; engines of other batch sizes may share the parameters. An Engine and those it shares with serve one
// thread at a time; it prints nothing and reads no environment.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/model_files.h"
#include "models/vit.h"
#include "ops/linear.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"

namespace vitrail {

// Memory that the caller of an engine holds on the same device while it runs: prefetched batches, and images
// that threads are decoding.
struct HeldBeside {
  size_t batches_bytes = 0, decoder_bytes = 0;  // decoder_bytes: for each decoding thread
  int64_t decoders = 0;
  std::string option = {};  // "--threads ": stands in messages before the number
  size_t bytes() const { return batches_bytes + static_cast<size_t>(decoders) * decoder_bytes; }
};

struct EngineOptions {
  std::string backend = "cpu";  // "cpu", "cuda" or "ref"
  int ordinal = 0;              // which GPU
  int threads = 0;              // 0: one per core
  std::string isa;              // a lower instruction set by name; empty: the best
  int64_t batch = 1;
  DType dtype = DType::kF32;                   // f64 is for the reference backend
  DType compute = DType::kF32;                 // bf16, f16: activations and weights of GEMMs (GPU)
  Arithmetic arithmetic = Arithmetic::kExact;  // in the GEMMs of the blocks; see docs/precision.md
  bool rounds_few_rows = false;                // in GEMMs of so few rows that it takes longer, too
  bool fuse = true;
  bool check_reference = false;  // run every node on the reference backend too and stop at a difference
  bool parallel_heads = true, parallel_rows = true, parallel_softmax = true;
  std::shared_ptr<const KernelTable> kernels = nullptr;  // measured preferences of the kernel choice
  // Outputs in addition to the logits; see VitRecordOptions.
  bool features = false, layers = false, attention = false, probabilities = false;
  int64_t attention_block = -1;  // the only block whose attention is output; -1: all
  // One of several ranks that share the work: its part of the mesh, and its context, which must outlive the
  // engine. `batch` is that of all ranks. Null: the engine is alone and makes its own.
  Distribution distribution = {};
  RankContext* rank = nullptr;
  HeldBeside beside = {};
  const char* dash = "";  // what stands before the name of an option in messages: "--" on a command line
  size_t arena_bytes = 0, staging_bytes = 0;  // minimum sizes: room for engines that will share the arenas
  // Called once memory is known to suffice, before the parameters are read, to start other work meanwhile.
  std::function<void()> when_it_fits = {};
  // Folders in which packed weights may be kept from one start to the next, best first; empty: none.
  std::vector<std::string> cache_folders;
};

// Returns the program that a run with these options executes; `after` receives it as each pass leaves it.
Program engine_program(const VitConfig& config, const EngineOptions& options, const AfterPass& after = {});

// Records, fuses and plans without allocating anything; Engine runs exactly this plan.
ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options);
// Plans for a device that need not be present; threads and isa of the options are ignored.
ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options, DeviceInfo device);

// Plans another program over the parameters of `base`, in the storage order they have there.
ExecutionPlan plan_sharing(const VitConfig& config, const EngineOptions& options, const ExecutionPlan& base);

// Returns the device that the options name; throws Error(kDevice) when it is not present.
DeviceInfo engine_device(const EngineOptions& options);
// Returns a device as the options want it used.
DeviceInfo used_as(DeviceInfo device, const EngineOptions& options);

class Engine {
 public:
  // Loads the parameters of an opened model; the source is not needed afterwards.
  Engine(const OpenedModel& model, const EngineOptions& options);
  // Fills the parameters by the rule of models/vit_init.h, for an architecture without a file.
  Engine(const VitConfig& config, const EngineOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns another program of the same model, for another batch or other outputs. It shares the parameters,
  // the device and, where they are large enough, the arenas. Engines that share take turns, and the outputs
  // of one are invalid once another runs. Throws Error(kMemory) where its own arena does not fit.
  Engine sharing(const EngineOptions& options) const;

  const EngineOptions& options() const;  // of the engine that loaded the parameters
  const VitConfig& config() const;
  const ExecutionPlan& plan() const;
  const Executor& executor() const;
  int64_t batch() const;                  // images that this rank takes at once
  size_t image_elems() const;             // floats of one image, planar [C Y X]
  const std::string& cache_note() const;  // what became of cache_folders, one sentence; empty without them

  // Runs `count` images (1..batch); missing ones are padded with zeros.
  void run(std::span<const float> images, int64_t count);
  // Runs the last images again, which must still be on the device: on the CPU their bytes are reused, see
  // keeps_inputs().
  void run_again();
  bool keeps_inputs() const;
  void finish();  // waits for the device
  const Device& device() const;
  // Returns the output rows of the last run as floats, `count` images long, whatever the dtype: "logits",
  // "features", "probs", "embed", "blocks.3", "blocks.3.attention"...
  std::vector<float> output(const std::string& name) const;
  std::vector<double> output_f64(const std::string& name) const;
  bool has_output(const std::string& name) const;

  void reset_times();
  CollectiveTimes take_collective_times();  // what ranks exchanged since the last call
  void time_nodes(bool wanted);             // on a GPU: run node by node and time each

 private:
  struct Shared;
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace vitrail
