// Holds what a case has measured, in one form for all kinds of them: taken from what its command printed or
// left in a run folder, kept as JSON, read back and checked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/study/cases.h"
#include "telemetry/rank_times.h"

namespace vitrail {

struct EpochResult {
  int64_t epoch = 0;
  double seconds = kUnknown, train_loss = kUnknown, eval_loss = kUnknown, top1 = kUnknown;
  double updates = kUnknown;
};

// A GPU while a case ran.
struct GpuReading {
  int64_t id = 0;
  std::string name;
  double load = kUnknown;         // 0..1, mean of the readings
  double temperature = kUnknown;  // degrees Celsius, the highest
  double used_bytes = kUnknown, total_bytes = kUnknown;
  double watts = kUnknown;  // drawn, mean of the readings
};

struct CaseResult {
  StudyCase which;
  std::string error;  // why there is no result; empty: there is one
  double time = kUnknown, took_s = kUnknown;
  double update_s = kUnknown, images_per_s = kUnknown;  // medians within the case
  std::vector<RankTime> ranks;                          // of an update, by rank
  double sent_bytes = kUnknown;                         // by a rank, an update
  double memory_bytes = kUnknown, loss = kUnknown;
  double message_s = kUnknown;  // of an all-reduce
  std::vector<EpochResult> epochs;
  std::vector<GpuReading> gpus;

  bool done() const { return error.empty(); }
};

// Each throws Error(kData) where a command has measured something else than the case.
CaseResult from_bench(const StudyCase& one, const std::string& out);
CaseResult from_all_reduce(const StudyCase& one, const std::string& out);
CaseResult from_run(const StudyCase& one, const std::string& folder);
// The seconds of the case's update by what its plan printed. Throws Error(kData) where it printed none.
double from_plan(const StudyCase& one, const std::string& out);

nlohmann::ordered_json to_json(const CaseResult& result);
// Throws Error(kData) where the record is of another case (of another number of ranks, for one) or holds a
// value that no measurement gives.
CaseResult result_from(const StudyCase& one, const Json& json, const std::string& place);

}  // namespace vitrail
