// The settings with which a run goes on with fewer ranks, applied as a command line would.
#pragma once

#include <map>

#include "base/values.h"
#include "train/balance.h"
#include "train/train_config.h"

namespace vitrail {

inline TrainConfig applied(TrainConfig config, const std::vector<std::string>& settings) {
  const std::map<std::string, int64_t*> fields = {{"mesh.dp", &config.mesh.dp},
                                                  {"train.batch", &config.train.batch},
                                                  {"train.micro_batch", &config.train.micro_batch},
                                                  {"train.accumulation", &config.train.accumulation}};
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
    if (key == "mesh.balance")
      config.mesh.balance = {value};
    else
      *fields.at(key) = *parse_integer(value);
  }
  return config;
}

}  // namespace vitrail
