// Says what a training run reports at a moment: a step, an evaluation, the end of an epoch, an event; and the
// JSON line each becomes in metrics.jsonl (docs/run-folder.md lists the keys). Measures nothing itself.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace vitrail {

// The value of what was not measured: null in JSON, left out on the display.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct TrainStatus {
  int64_t step = 0, total_steps = 0;    // updates done, of how many (0: open end)
  int64_t epoch = 0, total_epochs = 0;  // from 0
  double loss = kUnknown, lr = kUnknown, grad_norm = kUnknown;
  double images_per_second = kUnknown;
  double interval_s = kUnknown;   // time this line covers,
  double data_wait_s = kUnknown;  // and how much of it was spent waiting for data
  double loss_scale = kUnknown;   // fp16 only
  double eta_s = kUnknown;
  uint64_t memory_bytes = 0;  // 0: unknown
  int64_t skipped = 0;        // updates skipped so far because of NaN or Inf
  double time = kUnknown;     // unix_seconds()

  double data_wait_share() const;  // as a share of the interval; kUnknown without both
};

struct EvalStatus {
  int64_t step = 0, epoch = 0;
  std::optional<double> top1, top5;         // 0..1, one label an image
  std::optional<double> mean_ap, macro_f1;  // 0..1, several labels an image
  double loss = kUnknown;
  int64_t count = 0;              // images
  std::string weights = "model";  // or "ema"
  double seconds = kUnknown;
  bool best = false;  // the best so far
  double time = kUnknown;
};

struct EpochSummary {
  int64_t step = 0, epoch = 0;
  double train_loss = kUnknown, eval_loss = kUnknown, lr = kUnknown;
  std::optional<double> eval_top1, eval_top5;  // 0..1
};

struct RunEvent {
  std::string what;  // one word: "resume", "skipped_update", "checkpoint", "finished"...
  std::string text;  // for people
  int64_t step = 0;
  double time = kUnknown;
};

nlohmann::ordered_json to_json(const TrainStatus& status);
nlohmann::ordered_json to_json(const EvalStatus& status);
nlohmann::ordered_json to_json(const EpochSummary& summary);
nlohmann::ordered_json to_json(const RunEvent& event);

}  // namespace vitrail
