// The origin of a model, as far as it can be found: from the facts beside the model, from the run that wrote
// it, and from the run's data where that is still available.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "train/config_io.h"
#include "train/learned_from.h"

namespace vitrail {

struct ModelOrigin {
  std::string run;                     // folder of the run that wrote the model; empty: none found
  std::string started_in;              // where that run was started; empty: not known
  std::optional<LearnedFrom> learned;  // nothing: the model holds no such record
};
// `find` resolves the name of a model.
ModelOrigin origin_of(const std::string& model, const FindModel& find);

struct RunData {
  DataConfig config;
  DataSplits splits;
  bool unchanged = true;  // the data is what the run learned from, as far as that is known
};
// Opens the run's data: where its config says, relative to the working folder or to the folder where the run
// was started; unchanged data is preferred. Throws Error(kData) or Error(kConfig) when there is none.
RunData open_run_data(const ModelOrigin& origin);

// Returns `name` divided as the run divided its own data; nothing when it is not the data that the run
// learned from.
std::optional<DataSplits> divided_as_learned(const LearnedFrom& learned, const std::string& name);

}  // namespace vitrail
