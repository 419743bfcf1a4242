// A study that has been measured: its results by case, by point and by curve, as JSON, as tables and as CSV,
// file 003's own columns among them. Prints and writes nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/study/points.h"
#include "telemetry/table.h"

namespace vitrail {

// A point that a model of the machine has predicted; it is drawn beside the measured ones.
struct PredictedPoint {
  std::string model, device, transport;
  int64_t ranks = 1, batch = 0;  // images of a rank
  double update_s = 0;
};
// Reads a JSON list of such points. Throws Error(kData) for one that cannot be.
std::vector<PredictedPoint> read_predicted(const std::string& path);

struct Study {
  // `header` says what machine and version measured it, on how many cores.
  Study(StudyConfig of, nlohmann::ordered_json header, int cores, std::vector<CaseResult> measured);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  ~Study() = default;

  StudyConfig config;
  nlohmann::ordered_json header;
  std::vector<CaseResult> results;
  std::vector<StudyPoint> points;
  std::vector<Curve> curves;
  std::vector<MessageCurve> messages;
  std::vector<PredictedPoint> predicted;
  Advice advice;

  size_t failed() const;  // cases
};

// A table of a study, for text and for a page; a column that says nothing anywhere is left out.
struct StudyTable {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};
StudyTable curve_table(const Curve& curve);
StudyTable message_table(const Study& study);
std::string fit_text(const Curve& curve);   // a sentence; empty without a fit
std::string star_text(const Study& study);  // what the star behind a number of ranks means; empty without one

nlohmann::ordered_json to_json(const Study& study);
std::string to_text(const Study& study);

// One row for each case, rank and epoch (a measurement of updates counts as one epoch). It begins with the
// columns Timestamp, Rank, Epoch, Computation_Time, GPU_ID, GPU_Name, GPU_Load, GPU_Free_Mem_MB,
// GPU_Used_Mem_MB, GPU_Total_Mem_MB, GPU_Temp_C.
std::string to_csv(const Study& study);

}  // namespace vitrail
