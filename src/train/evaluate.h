// Measures how good a model is on a dataset: every image once, the last partial batch included. Knows no
// model: the forward pass is a callback.
#pragma once

#include <functional>
#include <optional>

#include "data/loader.h"
#include "ops/cross_entropy.h"
#include "telemetry/confusion.h"
#include "telemetry/multi_label.h"
#include "telemetry/run_status.h"
#include "train/team.h"

namespace vitrail {

// Returns the logits of `count` images.
using Forward = std::function<std::span<const float>(std::span<const float> images, int64_t count)>;

// One image's result, kept for the best and worst of a report.
struct SampleResult {
  int64_t sample = 0;
  int32_t label = 0, predicted = 0;
  float probability = 0;  // of the prediction
  float loss = 0;
};

// The results of a second model on the same images.
struct AgainstResult {
  int64_t right = 0;  // images whose top-1 of the second model is correct
  int64_t equal = 0;  // images for which both models have the same top-1
};

struct EvalResult {
  std::optional<ConfusionMatrix> confusion;     // for data with one label an image
  std::optional<MultiLabelResult> multi_label;  // for data with several labels an image
  double loss = 0;                              // mean, without smoothing
  int64_t count = 0;
  double seconds = 0;
  std::vector<SampleResult> best, worst;  // correct with the lowest loss; wrong with the highest
  std::optional<AgainstResult> against;   // with EvalOptions::against

  double top1() const { return confusion ? confusion->top().top1_share() : multi_label->mean_ap; }
  EvalStatus status(int64_t step, int64_t epoch, const std::string& weights) const;
};

// The rows of one batch: those of this rank, or of all ranks.
struct EvalRows {
  std::vector<float> logits;
  std::vector<int64_t> samples;  // -1: padding, or an image that could not be read
};
// Returns the rows of all ranks in the order of one rank's.
using GatherRows = std::function<EvalRows(EvalRows mine)>;
// The same for the ranks along dp, who cut batches at these points.
EvalRows rows_of_all(const Team& team, const std::vector<int64_t>& cuts, const EvalRows& mine);

struct EvalOptions {
  LossKind loss = LossKind::kSoftmax;
  size_t kept = 12;                            // of best and worst each
  std::function<void(int64_t done)> progress;  // images so far
  std::function<bool()> stop;                  // called between batches; true ends with Error(kStopped)
  Forward against;                             // a second model; one label an image only
  GatherRows gather;  // where ranks evaluate a part of each batch; every one of them gets the whole result
};

EvalResult evaluate(const Dataset& dataset, Loader& loader, const Forward& forward,
                    const EvalOptions& options);

}  // namespace vitrail
