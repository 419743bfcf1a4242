#include "telemetry/run_status.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

ordered_json number(const std::optional<double>& value) {
  return finite_or_null(value.value_or(kUnknown));
}
}  // namespace

double TrainStatus::data_wait_share() const {
  return interval_s > 0 ? data_wait_s / interval_s : kUnknown;
}

ordered_json to_json(const TrainStatus& s) {
  ordered_json line = {{"kind", "train"},
                       {"step", s.step},
                       {"epoch", s.epoch},
                       {"loss", number(s.loss)},
                       {"lr", number(s.lr)},
                       {"img_per_s", number(s.images_per_second)},
                       {"grad_norm", number(s.grad_norm)},
                       {"interval_s", number(s.interval_s)},
                       {"data_wait_s", number(s.data_wait_s)},
                       {"memory_bytes", s.memory_bytes},
                       {"skipped", s.skipped}};
  if (!std::isnan(s.loss_scale)) line["loss_scale"] = number(s.loss_scale);
  line["time"] = number(s.time);
  return line;
}

ordered_json to_json(const EvalStatus& s) {
  ordered_json line = {{"kind", "eval"}, {"step", s.step}, {"epoch", s.epoch}};
  if (s.top1) line["top1"] = number(s.top1);
  if (s.top5) line["top5"] = number(s.top5);
  if (s.mean_ap) line["map"] = number(s.mean_ap);
  if (s.macro_f1) line["f1"] = number(s.macro_f1);
  line.update({{"loss", number(s.loss)},
               {"count", s.count},
               {"weights", s.weights},
               {"seconds", number(s.seconds)},
               {"best", s.best},
               {"time", number(s.time)}});
  return line;
}

ordered_json to_json(const EpochSummary& s) {
  return {{"kind", "epoch"},
          {"step", s.step},
          {"epoch", s.epoch},
          {"train_loss", number(s.train_loss)},
          {"eval_loss", number(s.eval_loss)},
          {"eval_top1", number(s.eval_top1)},
          {"eval_top5", number(s.eval_top5)},
          {"lr", number(s.lr)}};
}

ordered_json to_json(const RunEvent& e) {
  return {{"kind", "event"}, {"step", e.step}, {"what", e.what}, {"text", e.text}, {"time", number(e.time)}};
}

}  // namespace vitrail
