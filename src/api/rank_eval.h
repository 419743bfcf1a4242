// A model measured on a dataset by one rank, or by several that share every batch: its loader, its engine
// and, where two types are compared, a second one. Knows no command line and prints nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/inference_ranks.h"
#include "api/predictor.h"
#include "api/row_exchange.h"
#include "data/loader.h"
#include "train/evaluate.h"

namespace vitrail {

// What the ranks of an evaluation have in common.
struct EvalWork {
  const OpenedModel& model;
  const Dataset& data;  // classes numbered as the model's
  EngineOptions engine;
  LoaderConfig loader;  // workers 0: as many threads decode as compute, for evaluation augments nothing
  bool prefetch_by_batch = false;    // in place of the loader's: as many as its workers keep up with
  std::string device, against = {};  // the type in which a second model runs on the device; empty: none
};

// Callbacks of an evaluation: called with a line on each of its decisions and, in more detail, on its times.
struct EvalNotes {
  std::function<void(const std::string&)> on_note, on_detail;
};

class EvalRank {
 public:
  // The model is ready to run; `work` and `rank` must outlive it.
  EvalRank(const EvalWork& work, const InferenceRank& rank, EvalNotes notes);

  // Every rank gets the result of all images. `on_progress` is called with the number done, and `stop` says
  // whether this rank asks for the end.
  EvalResult run(const std::function<void(int64_t done)>& on_progress, const std::function<bool()>& stop);
  const ExecutionPlan& plan() const { return model_->engine().plan(); }

 private:
  LoaderSettings loader_settings() const;
  std::unique_ptr<Predictor> second_model() const;
  LossKind loss() const;
  void report_skipped();

  const EvalWork& work_;
  const InferenceRank& rank_;
  EvalNotes notes_;
  EngineOptions engine_;
  LoaderSettings loader_;
  RowExchange exchange_;
  std::unique_ptr<Predictor> model_, other_;
  std::vector<std::string> skipped_;
  double bad_ = 0;
};

}  // namespace vitrail
