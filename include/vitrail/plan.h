/// \file
/// What an inference or a training run will cost, before anything is loaded or allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/export.h"
#include "vitrail/model.h"
#include "vitrail/train.h"

namespace vitrail {

/// A part of the memory that will be held.
struct MemoryItem {
  std::string name;    ///< "parameters", "transient", "optimizer"...
  uint64_t bytes = 0;  ///< of it at the peak
};

/// The plan of an inference or a training run. Bytes are exactly those that will be allocated.
struct Plan {
  std::vector<MemoryItem> memory;  ///< rows that add up to peak_bytes
  uint64_t peak_bytes = 0;         ///< the most that is held at once
  uint64_t available_bytes = 0;    ///< free on the device or target now; of one rank, where some share
  bool fits = false;               ///< peak_bytes are available
  int64_t batch = 0;               ///< images computed at once; for training, the micro-batch of one rank
  int64_t largest_batch = 0;       ///< the most that fits; 0: not even one image does
  int64_t parameters = 0;          ///< of the whole model
  double flops = 0;                ///< FLOPs of one run or training update; of one rank, where some share
  std::optional<double> seconds;   ///< seconds of one run or update, where the speed of the device is known
  std::string device;              ///< "cpu (avx2, 8 threads)", or the target's name
  std::vector<std::string> notes;  ///< assumptions; former names in the config
};

/// Plans running a model as Model::load() with these options would: a folder, a file, a bundled model's name,
/// or an architecture under timm's name without weights ("vit_large_patch16_224"). `target` is a device file
/// of `vitrail bench calibrate`, or the name of one shipped with Vitrail ("h200"); the device need not be
/// present.
VITRAIL_API Plan plan_inference(const std::string& model, const ModelOptions& options = {},
                                const std::string& target = {});

/// Plans a run as train() with these options would execute it, by the rank that needs most memory; `folder`
/// and `resume` are ignored. `config` is the path of a config file or JSON text; where its data is
/// missing, the classes of the model are assumed. With one rank a mesh of the config is planned for as many
/// as it names, each with the device for itself.
VITRAIL_API Plan plan_training(const std::string& config, const TrainOptions& options = {},
                               const std::string& target = {});

}  // namespace vitrail
