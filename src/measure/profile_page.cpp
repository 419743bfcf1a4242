#include "measure/profile_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/timing.h"
#include "measure/host.h"
#include "measure/profile_table.h"
#include "telemetry/format.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr double kLeastShare = 0.002;  // what takes less of the time is no mark of the roofline
constexpr size_t kMostSteps = 16;

std::string run_word(const Profile& p) {
  return p.training ? "an update" : "a run";
}

std::string step_name(const ProfileRow& row, bool training) {
  return training ? std::string(phase_name(row.phase)) + " " + row.name : row.name;
}

double seconds_in(const Profile& p, Phase phase, bool communication) {
  double seconds = 0;
  for (const ProfileRow& row : p.parts)
    if ((row.name == "communication") == communication && (communication || row.phase == phase))
      seconds += row.seconds;
  return seconds;
}

PagePairs tiles_of(const Profile& p) {
  const ProfileRow total = total_of(p.parts);
  PagePairs tiles = {
      {"median of " + format_integer(static_cast<int64_t>(p.seconds.count)) + ", " + run_word(p),
       format_seconds(p.seconds.median)},
      {"images a second", format_si(static_cast<double>(p.batch) / p.seconds.median)},
      {"achieved", format_si(total.flops / p.seconds.median) + "FLOP/s"}};
  if (p.peaks.gflops > 0) tiles.emplace_back("measured peak", format_si(1e9 * p.peaks.gflops) + "FLOP/s");
  if (p.peaks.gbps > 0) tiles.emplace_back("copying", format_si(1e9 * p.peaks.gbps) + "B/s");
  if (p.training)
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate})
      tiles.emplace_back(phase_name(phase), format_seconds(seconds_in(p, phase, false)));
  if (const double exchanged = seconds_in(p, Phase::kForward, true); exchanged > 0)
    tiles.emplace_back("communication", format_seconds(exchanged));
  return tiles;
}

void add_tables(Page& page, const Profile& p) {
  page.section("parts", "By part of the network");
  page.note(
      "bound: the least time by the measured peaks, c of compute or m of memory; above 100 % of it the data "
      "came "
      "from a cache.");
  page.table(profile_html(p.parts, p.peaks, ProfileColumns::kParts));
  page.section("steps", "By step of a layer");
  page.note("Steps joined by + run as one kernel.");
  page.table(profile_html(p.fine, p.peaks, ProfileColumns::kParts));
  page.section("operations", "By operation");
  page.table(profile_html(p.operations, p.peaks, ProfileColumns::kKernels));
}
PagePairs machine_pairs() {
  const MachineInfo machine = read_machine();
  return {{"processor", machine.processor},
          {"cores", strf("%d, of which %d usable", machine.cores, machine.usable)},
          {"memory", format_bytes(machine.memory_bytes)}};
}

}  // namespace

Figure roofline_of(const Profile& p) {
  RooflineChart chart{.title = "Roofline", .roofs = {}, .bytes_per_s = p.peaks.gbps * 1e9, .work = {}};
  if (p.peaks.gflops > 0) chart.roofs.push_back({"measured peak", p.peaks.gflops * 1e9});
  const double all = total_of(p.fine).seconds;
  std::vector<ProfileRow> rows;
  for (const ProfileRow& row : p.fine)
    if (row.seconds >= kLeastShare * all && row.flops > 0) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  rows.resize(std::min(rows.size(), kMostSteps));
  for (const ProfileRow& row : rows)
    chart.work.push_back({step_name(row, p.training), row.flops, row.bytes, row.seconds});
  return roofline_chart(chart);
}

Figure layers_of(const Profile& p) {
  std::set<int> blocks;
  double most = 0;
  for (const ProfileRow& row : p.parts) {
    blocks.insert(row.layer_numbers.begin(), row.layer_numbers.end());
    for (const double seconds : row.layer_seconds) most = std::max(most, seconds);
  }
  const TimeUnit unit = time_unit(most);
  BarChart chart{.title = "Time of each layer", .x_label = "layer", .y_label = unit.name};
  chart.stacked = chart.wide = true;
  for (const int block : blocks) chart.groups.push_back(std::to_string(block));
  for (const ProfileRow& row : p.parts) {
    if (row.layers() == 0) continue;
    auto series =
        std::find_if(chart.series.begin(), chart.series.end(), [&](auto& s) { return s.name == row.name; });
    if (series == chart.series.end())
      series = chart.series.insert(chart.series.end(), {row.name, std::vector<double>(blocks.size())});
    for (size_t i = 0; i < row.layer_numbers.size(); ++i) {
      const auto place = std::distance(blocks.begin(), blocks.find(row.layer_numbers[i]));
      series->values[static_cast<size_t>(place)] += row.layer_seconds[i] * unit.per_second;
    }
  }
  return bar_chart(chart);
}

Figure ranks_of(const Profile& p) {
  const RankTimes times = rank_times_of(p);
  const TimeUnit unit = time_unit(p.seconds.median);
  BarChart chart{
      .title = "Time of each rank", .x_label = "", .y_label = strf("%s %s", unit.name, run_word(p).c_str())};
  chart.stacked = chart.horizontal = chart.wide = true;
  for (size_t r = 0; r < times.seconds.size(); ++r) chart.groups.push_back(strf("rank %zu", r));
  for (size_t c = 0; c < times.columns.size(); ++c) {
    BarSeries series{.name = times.columns[c]};
    for (const auto& seconds : times.seconds) series.values.push_back(seconds[c] * unit.per_second);
    chart.series.push_back(std::move(series));
  }
  return bar_chart(chart);
}

std::string to_page(const ProfileResult& result) {
  const Profile& p = result.own;
  Page page("Profile of " + result.model);
  page.verdict(p.what + ", on " + p.device);
  page.tiles(tiles_of(p));
  page.section("roofline", "Roofline");
  page.note(
      "Each mark is a step of the layers, all layers together, where it takes at least 0.2 % of the time. "
      "Its "
      "distance to the roof above it is what could be gained at most.");
  page.figure(roofline_of(p));
  page.section("layers", "Layers");
  page.figure(layers_of(p));
  if (!result.sweep.rows.empty()) {
    page.section("sweep", "Sweep");
    page.figure(sweep_figure(result.sweep));
    page.note("Lines and bars are medians, error bars reach from the quickest run to the 90th percentile.");
    page.table(to_table(result.sweep));
  }
  if (!p.ranks.empty()) {
    page.section("ranks", "Ranks");
    page.figure(ranks_of(p));
  }
  add_tables(page, p);
  if (result.beside) {
    page.section("beside", "Beside");
    page.paragraph(headline(*result.beside));
    page.table(profile_html(result.beside->parts, result.beside->peaks, ProfileColumns::kParts));
  }
  page.section("machine", "Machine");
  page.pairs(machine_pairs());
  return page.text("Vitrail " VITRAIL_VERSION);
}

std::string to_file(const ProfileResult& result, const std::string& name) {
  if (!name.ends_with(".svg")) return to_page(result);
  return to_svg(result.sweep.rows.empty() ? roofline_of(result.own) : sweep_figure(result.sweep));
}

}  // namespace vitrail
