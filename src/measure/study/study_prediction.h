// What a model of the machine says of the updates of a study, told before any of them is read: its points,
// and how far they are off from what was measured then. Runs no plan and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/study/points.h"

namespace vitrail {

// A predicted update; it is drawn beside the measured ones.
struct PredictedPoint {
  std::string model, device, transport;
  int64_t ranks = 1, batch = 0;  // images of a rank
  double update_s = 0;
};
// Reads a JSON list of such points. Throws Error(kData) for one that cannot be.
std::vector<PredictedPoint> read_predicted(const std::string& path);

struct StudyPrediction {
  std::string by;  // the network and the device, or the file of the points
  std::vector<PredictedPoint> points = {};
  std::vector<std::string> notes = {};  // a line each: how many updates are not predicted, and why

  // Returns the seconds of a case's update. One rank talks to nobody: its point over any transport will do.
  double update_s(const StudyCase& one) const;
};

// How far predicted updates are off from the measured ones, over one transport or all.
struct PredictionError {
  std::string of;                     // "vit on cpu, threads"
  Spread off;                         // shares of the measured time, without their signs
  const StudyPoint* worst = nullptr;  // of all points given
};
// The errors of each transport and, where there are several, of all; none without a prediction.
std::vector<PredictionError> prediction_errors(const std::vector<StudyPoint>& points);

// Who predicted, how far off, and what was left out; the points stand beside it.
nlohmann::ordered_json to_json(const StudyPrediction& prediction, const std::vector<StudyPoint>& points);

}  // namespace vitrail
