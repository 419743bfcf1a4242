/// \file
/// Training from a config, with callbacks on the way and a stop that loses nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "vitrail/export.h"

namespace vitrail {

/// Where a run begins.
enum class Resume {
  kNo,      ///< the folder must hold no run
  kNewest,  ///< from the newest good checkpoint, or from the start when there is none
  kStrict   ///< from the newest checkpoint, which must be good
};

/// How and where a run is executed; the config says what is trained.
struct TrainOptions {
  std::string folder;           ///< of the run: checkpoints, the best model, metrics, the report
  std::string device = "cpu";   ///< "cpu", "cuda" or "cuda:1"
  int threads = 0;              ///< of the CPU; 0: one per core
  Resume resume = Resume::kNo;  ///< where the run begins
  /// Ranks that share every batch as threads of this process, each with its own device or its share of the
  /// cores (`threads` is for each of them); the config's mesh says how. Ranks as processes are the program's
  /// alone: `vitrail launch` starts and watches them.
  int ranks = 1;
  /// Looks up a variable of the environment, as `std::getenv` does; the library reads none by itself. Every
  /// rank asks for what concerns it, each in a thread of its own and at the same time as others: for
  /// variables that only tests of Vitrail set, and with GPUs for `VITRAIL_NCCL`, the file of NCCL, NCCL's
  /// `NCCL_MULTI_RANK_GPU_ENABLE`, the driver's `CUDA_DEVICE_MAX_CONNECTIONS`. A text stays valid while the
  /// run lasts; null says that a variable is not set. What it throws ends the run and is rethrown by
  /// train(), as of a callback. Empty: none is set.
  std::function<const char*(const char* name)> variables = {};
};

/// The state after an update.
struct StepReport {
  int64_t step = 0, total_steps = 0;                  ///< updates done, of how many (0: open end)
  int64_t epoch = 0;                                  ///< from 0
  double loss = 0, learning_rate = 0, grad_norm = 0;  ///< of this update
  double images_per_second = 0;                       ///< over the last half minute
  double seconds_left = 0;                            ///< NaN where not known
  int64_t skipped = 0;                                ///< updates skipped so far because of NaN or Inf
};

/// The result of an evaluation.
struct EvalReport {
  int64_t step = 0, epoch = 0;              ///< updates done, and their epoch, from 0
  double loss = 0;                          ///< the mean over all images
  std::optional<double> top1, top5;         ///< 0..1, one label an image
  std::optional<double> mean_ap, macro_f1;  ///< 0..1, several labels an image
  int64_t count = 0;                        ///< images
  std::string weights;                      ///< "model" or "ema"
  bool best = false;                        ///< the best so far
};

/// Another event of a run: "resume", "skipped_update", "bad_sample", "finished"...
struct TrainEvent {
  std::string what;  ///< the kind, one word
  std::string text;  ///< for people
  int64_t step = 0;  ///< updates done
};

/// Callbacks, called on the thread that called train(), of several ranks by the first. An exception of one
/// ends the run at once and is rethrown by train(); saved checkpoints stay, and Resume::kNewest continues
/// from there. A callback may request a stop, on which several ranks agree with their next update.
struct TrainCallbacks {
  std::function<void(const StepReport&)> on_step = {};   ///< after every update
  std::function<void(const EvalReport&)> on_eval = {};   ///< after every evaluation
  std::function<void(int64_t step)> on_checkpoint = {};  ///< after a checkpoint is on the disk
  std::function<void(const TrainEvent&)> on_event = {};  ///< whatever else is in the run's log
  std::function<void(const std::string&)> on_note = {};  ///< decisions of set-up, former names
};

/// How a run ended.
struct TrainResult {
  bool finished = false;       ///< false: stopped, with everything saved
  std::string reason;          ///< "all steps done", "stopped on request"
  int64_t step = 0;            ///< updates done
  std::optional<double> best;  ///< the best evaluation so far: top-1 or mean average precision
};

/// Trains from a config (the path of a file or JSON text; docs/training.md lists the settings) until its end
/// or until `stop` is requested, which saves everything first. Several runs may execute in threads of their
/// own, each in its own folder: a folder that another run holds is refused.
VITRAIL_API TrainResult train(const std::string& config, const TrainOptions& options,
                              const TrainCallbacks& callbacks = {}, std::stop_token stop = {});

}  // namespace vitrail
