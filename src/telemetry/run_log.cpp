#include "telemetry/run_log.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_text.h"
#include "base/run_files.h"
#include "base/timing.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// Formats a number; the cell is empty for what was not measured.
std::string cell(double value) {
  return std::isfinite(value) ? strf(",%.10g", value) : ",";
}

// Writes accuracies in percent, as timm does.
std::string summary_row(const Json& line) {
  const auto value = [&](const char* key) { return metrics_number(line, key); };
  return strf("%.0f", value("epoch")) + cell(value("train_loss")) + cell(value("eval_loss")) +
         cell(100 * value("eval_top1")) + cell(100 * value("eval_top5")) + cell(value("lr")) + "\n";
}

std::string dumped(const ordered_json& line) {
  return json_text(line) + "\n";
}

// The key of a curve in metrics.jsonl and its tag in TensorBoard. An evaluation's tag also names the weights,
// the model's own or their average.
struct Curve {
  const char *key, *tag;
};
constexpr Curve kTrainCurves[] = {{"loss", "train/loss"},
                                  {"lr", "train/lr"},
                                  {"grad_norm", "train/grad_norm"},
                                  {"img_per_s", "speed/img_per_s"},
                                  {"data_wait_s", "speed/data_wait_s"},
                                  {"memory_bytes", "speed/memory_bytes"},
                                  {"loss_scale", "train/loss_scale"},
                                  {"skipped", "train/skipped"}};
constexpr Curve kEvalCurves[] = {
    {"top1", "top1"}, {"top5", "top5"}, {"map", "map"}, {"f1", "f1"}, {"loss", "loss"}};

void write_curve(EventWriter& events, const std::string& tag, const ordered_json& line, const char* key) {
  const auto value = line.find(key);
  if (value == line.end() || !value->is_number()) return;
  events.scalar(tag, value->get<double>(), line["step"],
                line["time"].is_number() ? line["time"].get<double>() : 0);
}
}  // namespace

RunLog::RunLog(const std::string& folder, const RunLogOptions& options) {
  const std::string rows = restore(folder, options);
  write_file(RunFiles(folder).summary(), rows);
  metrics_ = std::make_unique<AppendFile>(RunFiles(folder).metrics(), options.trouble);
  summary_ = std::make_unique<AppendFile>(RunFiles(folder).summary(), options.trouble);
  if (!options.tensorboard) return;
  const auto first = options.resume_step ? std::optional(*options.resume_step + 1) : std::nullopt;
  events_ = std::make_unique<EventWriter>(folder, unix_seconds(), first, options.trouble);
}

// Trims metrics.jsonl to the step from which the run resumes; returns what summary.csv then holds.
std::string RunLog::restore(const std::string& folder, const RunLogOptions& options) {
  const std::string path = RunFiles(folder).metrics();
  std::string rows = kSummaryHeader;
  if (!options.resume_step) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(path, none);
    if (!none && bytes > 0)
      throw Error(ErrorKind::kWrite, strf("%s already holds the log of a run", path.c_str()),
                  "go on with it by --resume, or choose another folder with --out");
    return rows;
  }
  // A run that starts again from step 0 keeps no lines, those before its first step included.
  const int64_t last_step = *options.resume_step > 0 ? *options.resume_step : -1;
  trimmed_ = trim_metrics(path, last_step, options.eval_due, [&](const Json& line) {
    remember(line);
    if (metrics_text(line, "kind") == "epoch") rows += summary_row(line);
  });
  return rows;
}

void RunLog::remember(const Json& line) {
  const std::string kind = metrics_text(line, "kind");
  if (!line.contains("epoch") || !line["epoch"].is_number_integer()) return;
  const auto number = line["epoch"].get<int64_t>();
  if (kind == "epoch") {
    epochs_.erase(number);
    return;
  }
  Epoch& epoch = epochs_[number];
  const double loss = metrics_number(line, "loss");
  if (kind == "train" && !std::isnan(loss)) {
    epoch.loss_sum += loss;
    ++epoch.losses;
  }
  if (kind == "eval") {
    epoch.eval_loss = loss;
    if (line.contains("top1")) epoch.top1 = metrics_number(line, "top1");
    if (line.contains("top5")) epoch.top5 = metrics_number(line, "top5");
  }
}

void RunLog::write(const ordered_json& line) {
  metrics_->append(dumped(line));
  remember(Json(line));
}

void RunLog::train(const TrainStatus& status) {
  const ordered_json line = to_json(status);
  write(line);
  if (!events_) return;
  for (const auto& [key, tag] : kTrainCurves) write_curve(*events_, tag, line, key);
  events_->flush();
}

void RunLog::eval(const EvalStatus& status) {
  const ordered_json line = to_json(status);
  write(line);
  if (!events_) return;
  const std::string group = status.weights == "model" ? "eval/" : "eval_" + status.weights + "/";
  for (const auto& [key, tag] : kEvalCurves) write_curve(*events_, group + tag, line, key);
  events_->flush();
}

void RunLog::timing(const TimingStatus& status) {
  write(to_json(status));
}

void RunLog::start(const StartStatus& status) {
  write(to_json(status));
}

void RunLog::finish_epoch(int64_t epoch, int64_t step, double lr) {
  const Epoch& seen = epochs_[epoch];
  const double mean = seen.losses > 0 ? seen.loss_sum / static_cast<double>(seen.losses) : kUnknown;
  const ordered_json line = to_json(EpochSummary{.step = step,
                                                 .epoch = epoch,
                                                 .train_loss = mean,
                                                 .eval_loss = seen.eval_loss,
                                                 .lr = lr,
                                                 .eval_top1 = seen.top1,
                                                 .eval_top5 = seen.top5});
  summary_->append(summary_row(Json(line)));
  write(line);
}

void RunLog::event(const RunEvent& event) {
  write(to_json(event));
}

void RunLog::sync() {
  metrics_->sync();
  summary_->sync();
  if (events_) events_->sync();
}

void RunLog::text(const std::string& tag, const std::string& markdown, int64_t step) {
  if (events_) events_->text(tag, markdown, step, unix_seconds());
}

void RunLog::image(const std::string& tag, const EncodedPng& image, int64_t step) {
  if (events_) events_->image(tag, image, step, unix_seconds());
}

}  // namespace vitrail
