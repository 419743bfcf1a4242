// What every setting of a run must change, one row per key.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "data/decode.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

// The part of a run that shows a change.
enum class Shows {
  kWeights,
  kModel,
  kRates,
  kEvals,
  kLog,
  kCheckpoints,
  kFiles,
  kScale,
  kEnd,
  kMemory,
  kSteps
};

using SettingChange = std::function<void(TrainConfig&)>;
struct SettingRow {
  Shows what;
  SettingChange prepare, change;
};
using SettingRows = std::map<std::string, SettingRow>;

// A folder without a validation part, and teachers.
class SettingsFolder : public WorkFolder {
 public:
  SettingsFolder() {
    for (int i = 0; i < 40; ++i) {
      Image image = Image::blank(8, 8, 3);
      for (size_t at = 0; at < image.pixels.size(); ++at)
        image.pixels[at] = static_cast<uint8_t>((i % 3) * 60 + static_cast<int>(at) * (i + 3) % 50);
      const std::string folder = *this / strf("images/class%d", i % 3);
      std::filesystem::create_directories(folder);
      write_png(strf("%s/%02d.png", folder.c_str(), i), image);
    }
    for (const int64_t seed : {1, 2}) {
      TrainConfig config = tiny_config(20);
      config.train.seed = seed;
      config.optim.lr = 0.01;
      train(config, teacher(seed));
    }
  }
  std::string teacher(int64_t seed) const { return *this / strf("teacher%d", static_cast<int>(seed)); }
  SettingChange taught(DistillKind kind) const {
    return [this, kind](TrainConfig& c) { c.distill = {kind, teacher(1) + "/best", 0.5, 2}; };
  }
  SettingChange in_folder() const {
    return [this](TrainConfig& c) { c.data.train = "folder:" + (*this / "images"); };
  }
};

// The rows may refer to `work`, which must outlive them.
SettingRows setting_rows(const SettingsFolder& work);

}  // namespace vitrail::testing
