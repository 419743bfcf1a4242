// A model for those that start from one, or learn from one.
#pragma once

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

// A model that knows its four classes, trained once for all tests.
inline const std::string& trained_model() {
  static const WorkFolder work;
  static const std::string folder = [] {
    TrainConfig config = tiny_config(100);
    config.data.train = "synthetic:3x8x8x4x400";
    config.train.batch = 16;
    config.optim.lr = 0.005;
    train(config, work / "base");
    return work / "base/best";
  }();
  return folder;
}

}  // namespace vitrail::testing
