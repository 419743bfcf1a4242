#include "train/run_report.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json_text.h"
#include "base/run_files.h"
#include "data/decode.h"
#include "data/resize.h"
#include "telemetry/format.h"
#include "telemetry/report.h"
#include "telemetry/run_curves.h"

namespace vitrail {

namespace {

constexpr int64_t kShownSide = 96;  // pixels of an image's shorter side in the report

std::vector<ReportImage> images_of(const std::vector<SampleResult>& results, const Dataset& dataset) {
  std::vector<ReportImage> images;
  for (const SampleResult& result : results) {
    const Image image = dataset.load(result.sample, kShownSide);
    const int64_t shorter = std::min(image.height, image.width);
    const auto shown = [&](int64_t side) { return std::min(side * kShownSide / shorter, 4 * kShownSide); };
    const Size size{shown(image.height), shown(image.width)};
    images.push_back(
        {encode_png(resize(image, size, Interpolation::kBicubic)), dataset.sample_name(result.sample),
         dataset.classes()[static_cast<size_t>(result.label)],
         dataset.classes()[static_cast<size_t>(result.predicted)], static_cast<double>(result.probability)});
  }
  return images;
}

std::string verdict(const RunReportContent& c) {
  const std::string steps = format_count(c.outcome.step, "step");
  if (!c.outcome.last_eval) return steps + " done, nothing to evaluate on";
  const std::string best = c.outcome.best < 0
                               ? "none kept as the best"
                               : strf("best %s at step %s", format_percent(c.outcome.best).c_str(),
                                      format_integer(c.best_step).c_str());
  return strf("%s %s on %s after %s; %s", format_percent(c.outcome.last_eval->top1()).c_str(),
              c.outcome.last_eval->confusion ? "top-1" : "mean average precision",
              format_count(c.outcome.last_eval->count, "image").c_str(), steps.c_str(), best.c_str());
}

// Returns the bytes on the host that count with the device's memory: all of them where both are the same,
// else those that are page-locked for the device.
size_t offloaded(const RunReportContent& c, Category category) {
  return c.rank.hardware->shares_host_memory() ? c.plan.layout->host_bytes(category)
                                               : c.plan.layout->bytes(Home::kLocked, category);
}

// Returns what was planned for each buffer beside what was allocated: whole arenas, not what is alive in them
// at the peak.
std::vector<MemoryRow> allocations(const RunReportContent& c) {
  std::vector<MemoryRow> rows;
  const MemoryPlan none, &teacher = c.teacher ? c.teacher->memory() : none;
  for (Category category : {Category::kParameters, Category::kGradients, Category::kOptimizer})
    if (const size_t planned = c.plan.layout->bytes(category) + offloaded(c, category) +
                               (teacher.persistent ? teacher.persistent->bytes(category) : 0))
      rows.push_back({to_string(category), planned, c.rank.allocated(category)});
  const size_t scratch =
      c.plan.offload && c.rank.hardware->shares_host_memory() ? c.plan.offload->transient_bytes() : 0;
  rows.push_back({"activations and scratch", c.plan.transient_bytes() + teacher.transient_bytes + scratch,
                  c.rank.allocated(Category::kTransient)});
  rows.push_back({"batches being loaded",
                  c.setup.loader_bytes() + c.plan.staging_bytes() + c.plan.layout->bytes(Category::kStaging) +
                      offloaded(c, Category::kStaging) + teacher.staging_bytes,
                  c.rank.allocated(Category::kStaging)});
  if (const size_t foreign = c.rank.hardware->foreign_bytes())
    rows.push_back({"foreign: driver and libraries", foreign, foreign});
  return rows;
}

}  // namespace

void add_eval_sections(Report& report, const EvalResult& result, const Dataset& dataset) {
  report.classes = dataset.classes();
  report.confusion = result.confusion;
  report.multi_label = result.multi_label;
  report.best = images_of(result.best, dataset);
  report.worst = images_of(result.worst, dataset);
}

void write_run_report(const RunReportContent& c) {
  Report report;
  report.title = std::filesystem::path(c.place.folder + "/").parent_path().filename().string();
  report.verdict = verdict(c);
  RunHistory history = read_run_history(RunFiles(c.place.folder).metrics());
  report.curves = std::move(history.curves);
  report.events = std::move(history.events);
  report.ranks = read_rank_history(RunFiles(c.place.folder).metrics());
  report.figures = {{"steps", strf("%s of %s", format_integer(c.outcome.step).c_str(),
                                   format_integer(c.setup.total_steps).c_str())},
                    {"parameters", format_integer(count_params(c.setup.model->card.config))},
                    {"ended", c.outcome.reason}};
  if (!c.update_seconds.empty()) report.figures.emplace_back("time", c.update_seconds);
  if (c.outcome.last_eval) add_eval_sections(report, *c.outcome.last_eval, *c.setup.data.val);
  report.memory = allocations(c);
  report.machine = {{"device", c.plan.micro.device.name},
                    {"threads", std::to_string(c.plan.micro.device.threads)}};
  report.config = json_text(to_json(c.setup.config), 2);
  report.generator = c.place.generator;
  write_file(RunFiles(c.place.folder).report(), render_report(report));
}

}  // namespace vitrail
