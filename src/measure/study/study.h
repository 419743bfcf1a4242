// A study that has been measured: its results by case, by point and by curve, as JSON, as tables and as CSV,
// file 003's own columns among them. Prints and writes nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/study/study_prediction.h"
#include "telemetry/table.h"

namespace vitrail {

struct Study {
  // `header` says what machine and version measured it, on how many cores.
  Study(StudyConfig of, nlohmann::ordered_json header, int cores, std::vector<CaseResult> measured,
        StudyPrediction before = {});
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  ~Study() = default;

  StudyConfig config;
  nlohmann::ordered_json header;
  std::vector<CaseResult> results;
  StudyPrediction prediction;  // made before the results were read
  std::vector<StudyPoint> points;
  std::vector<Curve> curves;
  std::vector<MessageCurve> messages;
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
StudyTable prediction_table(const Study& study);
std::string fit_text(const Curve& curve);         // a sentence; empty without a fit
std::string prediction_text(const Study& study);  // who predicted; empty without a prediction
std::string star_text(const Study& study);  // what the star behind a number of ranks means; empty without one

nlohmann::ordered_json to_json(const Study& study);
std::string to_text(const Study& study);

// One row for each case, rank and epoch (a measurement of updates counts as one epoch). It begins with the
// columns Timestamp, Rank, Epoch, Computation_Time, GPU_ID, GPU_Name, GPU_Load, GPU_Free_Mem_MB,
// GPU_Used_Mem_MB, GPU_Total_Mem_MB, GPU_Temp_C.
std::string to_csv(const Study& study);

}  // namespace vitrail
