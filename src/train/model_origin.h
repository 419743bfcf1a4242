// What a model has learned from, as far as it is known here: from the facts beside the model, from the run
// that wrote it, and from the run's data where that is still at hand.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "train/config_io.h"
#include "train/learned_from.h"

namespace vitrail {

struct ModelOrigin {
  std::string run;                     // folder of the run that wrote the model; empty: none is there
  std::string started_in;              // where that run was started; empty: not known
  std::optional<LearnedFrom> learned;  // nothing: the model does not say
};
// `find` says where a model of that name lies.
ModelOrigin origin_of(const std::string& model, const FindModel& find);

struct RunData {
  DataConfig config;
  DataSplits splits;
  bool unchanged = true;  // it is what the run learned from, as far as that is known
};
// The run's data: where its config says, seen from here or from where the run was started; the one that is
// unchanged comes first. Error(kData) or Error(kConfig) when there is none.
RunData open_run_data(const ModelOrigin& origin);

// `name` divided as the run divided its own data; nothing when it is not the data that the run learned from.
std::optional<DataSplits> divided_as_learned(const LearnedFrom& learned, const std::string& name);

}  // namespace vitrail
