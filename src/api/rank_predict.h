// What a model makes of a list of image files, by one rank, or by several that share every batch: its stream
// of images and its engine. Knows no command line and prints nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/inference_ranks.h"
#include "api/predictor.h"
#include "api/row_exchange.h"
#include "base/timing.h"

namespace vitrail {

// What the ranks of a prediction have in common.
struct PredictWork {
  const OpenedModel& model;
  std::vector<std::string> paths;
  PredictTask task = PredictTask::kClassify;
  EngineOptions engine = {};
  bool upright = false;                    // images are turned as EXIF says
  std::string threads_option = {};         // "--threads ": stands in messages before the number
  Clock::time_point start = Clock::now();  // from here the time until the model is ready counts
};

// Callbacks of a prediction while it goes on.
struct PredictHooks {
  std::function<void(const ImageRow& row)> on_row;  // every image in order, on the first rank
  std::function<void(size_t images)> on_batch;      // after every batch of all ranks
  std::function<bool()> stop;                       // says whether this rank asks for the end
};

class PredictRank {
 public:
  // The model is ready to run; `work` and `rank` must outlive it. `on_line` is called with a line on what
  // it runs on, and on every oddity of a file.
  PredictRank(const PredictWork& work, const InferenceRank& rank,
              std::function<void(const std::string& line)> on_line);

  // Throws Error(kStopped) when a rank asked for the end and images are left.
  PredictTimes run(const PredictHooks& hooks);
  size_t not_turned() const { return not_turned_; }  // images whose EXIF orientation was not applied
  const std::vector<std::string>& labels() const { return predictor_->labels(); }
  const ExecutionPlan& plan() const { return predictor_->engine().plan(); }

 private:
  size_t next_batch(const PredictHooks& hooks);

  const PredictWork& work_;
  const InferenceRank& rank_;
  std::function<void(const std::string& line)> on_line_;
  RowExchange exchange_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<ImageStream> stream_;
  std::vector<float> rows_;  // of the batch being given
  size_t not_turned_ = 0;
  double start_seconds_ = 0;
};

}  // namespace vitrail
