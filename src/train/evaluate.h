// How good a model is on a dataset: every image once, the last partial batch included. Used by the trainer
// between epochs and by `eval` for any model; the forward pass is the caller's.
#pragma once

#include <functional>
#include <optional>

#include "data/loader.h"
#include "ops/cross_entropy.h"
#include "telemetry/confusion.h"
#include "telemetry/multi_label.h"
#include "telemetry/run_status.h"

namespace vitrail {

// Logits of `count` images.
using Forward = std::function<std::span<const float>(std::span<const float> images, int64_t count)>;

// One image's result, kept for the best and worst of a report.
struct SampleResult {
  int64_t sample = 0;
  int32_t label = 0, predicted = 0;
  float probability = 0;  // of the prediction
  float loss = 0;
};

// How a second model did on the same images.
struct AgainstResult {
  int64_t right = 0;  // its own top-1
  int64_t equal = 0;  // the same class first as the model evaluated
};

struct EvalResult {
  std::optional<ConfusionMatrix> confusion;     // one label an image
  std::optional<MultiLabelResult> multi_label;  // several
  double loss = 0;                              // mean, without smoothing
  int64_t count = 0;
  double seconds = 0;
  std::vector<SampleResult> best, worst;  // correct with the lowest loss; wrong with the highest
  std::optional<AgainstResult> against;   // with EvalOptions::against

  double top1() const { return confusion ? confusion->top().top1_share() : multi_label->mean_ap; }
  EvalStatus status(int64_t step, int64_t epoch, const std::string& weights) const;
};

struct EvalOptions {
  LossKind loss = LossKind::kSoftmax;
  size_t kept = 12;                            // of best and worst each
  std::function<void(int64_t done)> progress;  // images so far
  std::function<bool()> stop;                  // asked between batches; true ends with Error(kStopped)
  Forward against;                             // a second model; one label an image only
};

EvalResult evaluate(const Dataset& dataset, Loader& loader, const Forward& forward,
                    const EvalOptions& options);

}  // namespace vitrail
