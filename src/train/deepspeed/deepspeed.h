// Training settings out of a DeepSpeed JSON: what its keys become in a TrainConfig, what they would need that
// Vitrail lacks, and what has no effect. Knows no command line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "train/train_config.h"

namespace vitrail {

// Says who gave the value of a setting that the file speaks of, too. The file stands above a config, and
// below the command line.
enum class GivenBy { kDefault, kConfig, kCommand };

struct DeepSpeedBase {
  TrainConfig config;  // holds where the file says nothing, and where it says "auto"
  int ranks = 1;       // of the run; DeepSpeed's world is the mesh's dp of them; 0: as many as the mesh says
  std::function<GivenBy(const std::string& key)> given_by = {};  // of "optim.lr"; empty: always kDefault
};

struct DeepSpeedNote {
  std::string key;   // "zero_optimization.stage"
  std::string text;  // a sentence that names it
};

struct DeepSpeedReading {
  TrainConfig config;
  std::vector<DeepSpeedNote> notes;
  std::vector<DeepSpeedNote> refused;  // keys that would change the result and cannot be honoured
};

// Reads at most 1 MiB, comments allowed; throws Error(kConfig) with line and column for anything but JSON.
Json parse_deepspeed(std::string_view text, const std::string& place);

// Throws Error(kConfig), naming the key, for a value that no key can have and for a batch that the ranks do
// not divide.
DeepSpeedReading translate_deepspeed(const Json& file, const std::string& place, const DeepSpeedBase& base);

// Reads a file. Also throws Error(kConfig), naming all of them, for keys that are refused.
DeepSpeedReading read_deepspeed(const std::string& path, const DeepSpeedBase& base);

// The images of an update: batch = micro x accumulation x world. 0: not given.
struct BatchTriple {
  int64_t batch = 0, micro = 0, accumulation = 0;
};

// Completes it by DeepSpeed's own rules: two give the third, either batch alone has one accumulation. Throws
// Error(kConfig), with all numbers, unless the product is right.
BatchTriple complete_triple(const BatchTriple& given, int64_t world, const std::string& place);

}  // namespace vitrail
