#include "measure/study/study_figures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {

constexpr size_t kMostSeries = 8;  // a figure with more is not read

// The points of a side with updates, over all data, sorted by ranks, then batch.
std::vector<const StudyPoint*> points_on(const Side& side) {
  std::vector<const StudyPoint*> found;
  for (const StudyPoint& p : side.study.points)
    if (p.update_s.count > 0 && p.which.model == side.model && p.which.device == side.device)
      found.push_back(&p);
  std::stable_sort(found.begin(), found.end(), [](const StudyPoint* a, const StudyPoint* b) {
    return std::pair(a->which.ranks, a->which.batch) < std::pair(b->which.ranks, b->which.batch);
  });
  return found;
}

std::string point_name(const StudyPoint& p) {
  const StudyCase& c = p.which;
  return strf("%lld x %lld%s%s", static_cast<long long>(c.ranks), static_cast<long long>(c.batch),
              c.ranks > 1 ? (" " + c.transport).c_str() : "",
              c.fraction < 1 ? strf(", %.0f %%", 100 * c.fraction).c_str() : "");
}

void add_shares(const Side& side, std::vector<StudyFigure>& figures) {
  BarChart chart{
      .title = side.title("Where an update goes, by ranks x batch a rank"),
      .y_label = "% of an update",
      .series = {{"compute"}, {"exposed communication"}, {"wait for the slowest"}, {"wait for data"}},
      .stacked = true,
      .horizontal = true};
  for (const StudyPoint* p : points_on(side)) {
    const double total = p->times.total_s();
    if (!(total > 0)) continue;
    chart.groups.push_back(point_name(*p));
    const double waited = std::min(p->times.imbalance_s, p->times.exposed_s);
    const double parts[] = {p->times.compute_s, p->times.exposed_s - waited, waited, p->times.data_wait_s};
    for (size_t i = 0; i < chart.series.size(); ++i) chart.series[i].values.push_back(100 * parts[i] / total);
  }
  if (!chart.groups.empty()) figures.push_back({side.file("sync-share"), bar_chart(chart)});
}

// One line a number of ranks and transport, over batches of an update.
template <typename Value>
void add_against_batch(const Side& side, const char* name, const char* title, const char* label,
                       const Value& value, std::vector<StudyFigure>& figures) {
  LineChart chart{.title = side.title(title), .x_label = "images an update", .y_label = label, .log_x = true};
  for (const StudyPoint* p : points_on(side)) {
    const Spread spread = value(*p);
    if (spread.count == 0 || p->which.fraction < 1) continue;
    const std::string line = strf("%lld %s", static_cast<long long>(p->which.ranks),
                                  p->which.ranks == 1 ? "rank" : ("ranks, " + p->which.transport).c_str());
    auto found = std::find_if(chart.series.begin(), chart.series.end(),
                              [&](const Series& s) { return s.name == line; });
    if (found == chart.series.end()) found = chart.series.insert(chart.series.end(), {.name = line});
    const double batch = static_cast<double>(p->which.global_batch());
    found->points.push_back({batch, spread.median, spread.min, spread.max});
    if (std::find(chart.x_ticks.begin(), chart.x_ticks.end(), batch) == chart.x_ticks.end())
      chart.x_ticks.push_back(batch);
  }
  std::sort(chart.x_ticks.begin(), chart.x_ticks.end());
  if (chart.x_ticks.size() > 1) figures.push_back({side.file(name), line_chart(chart)});
}

void add_epochs(const Side& side, std::vector<StudyFigure>& figures) {
  LineChart loss{.title = side.title("Loss by epoch"), .x_label = "epoch", .y_label = "training loss"};
  LineChart accuracy{.title = side.title("Accuracy by epoch"), .x_label = "epoch", .y_label = "top-1, %"};
  for (const StudyPoint* p : points_on(side)) {
    if (p->epochs.size() < 2 || loss.series.size() >= kMostSeries) continue;
    loss.series.push_back({.name = point_name(*p)});
    accuracy.series.push_back({.name = point_name(*p)});
    for (const EpochResult& e : p->epochs) {
      loss.series.back().points.push_back({static_cast<double>(e.epoch + 1), e.train_loss});
      accuracy.series.back().points.push_back({static_cast<double>(e.epoch + 1), 100 * e.top1});
    }
  }
  if (loss.series.empty()) return;
  figures.push_back({side.file("loss-epoch"), line_chart(loss)});
  figures.push_back({side.file("accuracy-epoch"), line_chart(accuracy)});
}

// Adds a chart of how much of its time each rank computes, with the largest number of ranks measured.
void add_loads(const Side& side, std::vector<StudyFigure>& figures) {
  const std::vector<const StudyPoint*> all = points_on(side);
  if (all.empty() || all.back()->loads.size() < 2) return;
  BarChart chart{.title = side.title("Time in which each rank computes"),
                 .x_label = "rank",
                 .y_label = "% of an update"};
  for (size_t rank = 0; rank < all.back()->loads.size(); ++rank) chart.groups.push_back(std::to_string(rank));
  for (const StudyPoint* p : all) {
    if (p->loads.size() != chart.groups.size() || chart.series.size() >= kMostSeries) continue;
    chart.series.push_back({.name = point_name(*p)});
    for (const double load : p->loads) chart.series.back().values.push_back(100 * load);
  }
  figures.push_back({side.file("rank-load"), bar_chart(chart)});
}

void add_devices(const Study& study, std::vector<StudyFigure>& figures) {
  if (study.config.device.size() < 2) return;
  BarChart chart{
      .title = "Time by device", .x_label = "model, ranks x batch a rank", .y_label = "ms an update"};
  for (const std::string& device : study.config.device) chart.series.push_back({.name = device});
  for (const StudyPoint& p : study.points) {
    if (p.update_s.count == 0) continue;
    const std::string group = p.which.model + ", " + point_name(p);
    const auto found = std::find(chart.groups.begin(), chart.groups.end(), group);
    const auto at = static_cast<size_t>(found - chart.groups.begin());
    if (found == chart.groups.end()) {
      chart.groups.push_back(group);
      for (BarSeries& bars : chart.series) bars.values.push_back(NAN);
    }
    for (BarSeries& bars : chart.series)
      if (bars.name == p.which.device) bars.values[at] = 1e3 * p.update_s.median;
  }
  figures.push_back({"devices", bar_chart(chart)});
}

void add_messages(const Study& study, std::vector<StudyFigure>& figures) {
  LineChart chart{.title = "All-reduce by size; dashed: alpha + beta x bytes",
                  .x_label = "megabytes",
                  .y_label = "milliseconds",
                  .log_y = true,
                  .log_x = true};
  for (const MessageCurve& m : study.messages) {
    Series measured{.name = strf("%s, %lld ranks", m.transport.c_str(), static_cast<long long>(m.ranks))};
    Series fitted{.name = "fit: " + measured.name, .points = {}, .dashed = true, .follows = true};
    for (const StudyPoint* p : m.points) {
      const double mb = p->which.megabytes;
      if (std::find(chart.x_ticks.begin(), chart.x_ticks.end(), mb) == chart.x_ticks.end())
        chart.x_ticks.push_back(mb);
      measured.points.push_back(
          {mb, 1e3 * p->message_s.median, 1e3 * p->message_s.min, 1e3 * p->message_s.max});
      if (m.fit) fitted.points.push_back({mb, 1e3 * m.fit->seconds(mb * 1e6)});
    }
    chart.series.push_back(measured);
    if (m.fit) chart.series.push_back(fitted);
  }
  std::sort(chart.x_ticks.begin(), chart.x_ticks.end());
  if (!chart.series.empty()) figures.push_back({"all-reduce", line_chart(chart)});
}

}  // namespace

std::string Side::title(const std::string& text) const {
  return named ? strf("%s: %s, %s", text.c_str(), model.c_str(), device.c_str()) : text;
}

std::string Side::file(const std::string& name) const {
  if (!named) return name;
  std::string text = name + "-" + model + "-" + device;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '-';
  return text;
}

void add_batch_figures(const Side& side, std::vector<StudyFigure>& figures) {
  add_shares(side, figures);
  add_against_batch(
      side, "speed-batch", "Speed against batch", "images a second",
      [](const StudyPoint& p) { return p.images_per_s; }, figures);
  add_against_batch(
      side, "accuracy-batch", "Accuracy against batch", "top-1 after the last epoch, %",
      [](const StudyPoint& p) {
        Spread percent = p.top1;
        for (double* value : {&percent.median, &percent.min, &percent.max}) *value *= 100;
        return percent;
      },
      figures);
  add_epochs(side, figures);
  add_loads(side, figures);
}

std::vector<StudyFigure> figures_of(const Study& study) {
  std::vector<StudyFigure> figures;
  const bool several = study.config.models.size() * study.config.device.size() > 1;
  for (const std::string& model : study.config.models)
    for (const std::string& device : study.config.device) {
      const Side side{study, model, device, several};
      add_scaling_figures(side, figures);
      add_batch_figures(side, figures);
    }
  add_devices(study, figures);
  add_messages(study, figures);
  return figures;
}

}  // namespace vitrail
