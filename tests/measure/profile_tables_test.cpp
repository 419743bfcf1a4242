// The tables, figures and texts of a profile: every column worked out by hand from a few synthetic rows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/values.h"
#include "measure/profile_page.h"
#include "measure/profile_sweep.h"
#include "measure/profile_table.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

ProfileRow profile_row(const char* name, double seconds, double flops, double bytes,
                       Phase phase = Phase::kForward) {
  ProfileRow row{.name = name, .kind = "linear", .kernel = "gemm"};
  row.nodes = 2, row.seconds = seconds, row.flops = flops, row.bytes = bytes, row.phase = phase;
  return row;
}

// 100 GFLOP/s and 20 GB/s at most: the MLP is bound by compute, 10 ms, the norm by memory, 3 ms.
std::vector<ProfileRow> profile_rows_made() {
  std::vector<ProfileRow> rows = {profile_row("MLP", 0.03, 1e9, 6e7), profile_row("norm", 0.01, 4e6, 6e7)};
  rows[0].layer_seconds = {0.01, 0.02}, rows[0].layer_numbers = {0, 2};
  return rows;
}

Profile profile_of(std::vector<ProfileRow> rows, bool training = false) {
  Profile p{
      .what = "a model", .device = "cpu (2 threads)", .backend = "cpu", .training = training, .batch = 4};
  p.peaks = {100, 20};
  p.seconds = {.count = 9, .min = 0.03, .median = 0.04, .p90 = 0.05, .max = 0.06};
  p.parts = p.fine = p.operations = p.nodes = std::move(rows);
  return p;
}

std::vector<std::vector<std::string>> cells_of_html(const HtmlTable& table) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : table.columns) rows[0].push_back(column.title);
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (const HtmlCell& cell : row) rows.back().push_back(cell.text);
  }
  return rows;
}

TEST(ProfileTable, EveryColumn) {
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(cells_of_html(profile_html(profile_rows_made(), {100, 20}, ProfileColumns::kParts)),
            (Rows{{"operation", "nodes", "time", "per layer", "share", "GFLOP", "GFLOP/s", "MB", "GB/s",
                   "FLOP/B", "bound", "of bound"},
                  {"MLP", "2", "30.0 ms", "15.0 ms", "75.00 %", "1.000", "33.3", "60.0", "2.0", "16.7",
                   "10.0 ms c", "33 %"},
                  {"norm", "2", "10.0 ms", "", "25.00 %", "0.004", "0.4", "60.0", "6.0", "0.0667",
                   "3.00 ms m", "30 %"},
                  {"total", "4", "40.0 ms", "", "100.00 %", "1.004", "25.1", "120.0", "3.0", "8.37",
                   "10.0 ms c", "25 %"}}));
  std::vector<ProfileRow> phases = profile_rows_made();
  phases[1].phase = Phase::kUpdate;
  phases[1].bytes = phases[1].seconds = 0;
  const Rows rows = cells_of_html(profile_html(phases, {10000, 0}, ProfileColumns::kKernels));
  EXPECT_EQ(rows[0][0] + rows[0][6] + rows[0].back(), "phaseTFLOP/skernel") << "large rates are in thousands";
  EXPECT_EQ(rows[1].front() + rows[2].front() + rows[3].front(), "forwardupdate");
  EXPECT_EQ(rows[2], (std::vector<std::string>{"update", "norm", "2", "0 us", "0.00 %", "0.004", "0.0", "0.0",
                                               "0.0", "-", "0 us c", "-", "gemm"}));
  EXPECT_EQ(cells_of_html(profile_html(phases, {9999, 0}, ProfileColumns::kKernels))[0][6], "GFLOP/s");
  EXPECT_EQ(cells_of_html(profile_html(phases, {}, ProfileColumns::kKernels))[1][10], "-");
  const std::string text = profile_table(profile_rows_made(), {100, 20}, ProfileColumns::kParts);
  EXPECT_NE(text.find("███████▌"), std::string::npos) << "three quarters of ten cells\n" << text;
}

TEST(ProfileTable, TwoDevicesSideBySide) {
  std::vector<ProfileRow> second = {profile_row("MLP", 0.003, 1e9, 5e7), profile_row("head", 0.001, 0, 0)};
  const std::string text = beside_table({"cpu", profile_rows_made(), {100, 20}}, {"cuda", second, {1000, 0}});
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  const auto words = [](const std::string& line) {
    std::string out;
    for (const char c : line)
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    return out;
  };
  EXPECT_EQ(words(lines[0]),
            "operation cpu per layer share of peak of copy cuda per layer share of peak of copy cuda / cpu");
  EXPECT_EQ(words(lines[2]), "MLP 30.0 ms 15.0 ms 75.00 % 33 % 10 % 3.00 ms 75.00 % 33 % - 0.1 x");
  EXPECT_EQ(words(lines[3]), "norm 10.0 ms 25.00 % 0 % 30 %");
  EXPECT_EQ(words(lines[4]), "head 1.00 ms 25.00 % 0 % -");
  EXPECT_EQ(words(lines[6]), "total 40.0 ms 100.00 % 25 % 15 % 4.00 ms 100.00 % 25 % - 0.1 x");
}

TEST(ProfileText, NamesWhatWasMeasured) {
  Profile p = profile_of(profile_rows_made());
  EXPECT_EQ(headline(p),
            "a model on cpu (2 threads): 40.0 ms a run (median of 9); at most 100 GFLOP/s, 20.0 GB/s\n");
  p.peaks = {}, p.training = true;
  EXPECT_EQ(
      headline(p),
      "a model on cpu (2 threads): 40.0 ms an update (median of 9); peaks unknown: the GPU has no room to "
      "measure them\n");
  const auto bold = [](const std::string& text) { return "<" + text + ">"; };
  p = profile_of(profile_rows_made());
  p.nodes[0].name = "blocks.0.fc1", p.operations[0].name = "blocks.*.fc1";
  EXPECT_NE(tables_of(p, true, bold).find("<By node>"), std::string::npos);
  EXPECT_NE(tables_of(p, true, bold).find("blocks.0.fc1"), std::string::npos);
  EXPECT_NE(tables_of(p, false, bold).find("blocks.*.fc1"), std::string::npos);
  ProfileResult result{.model = "m", .dtype = "bf16", .own = p, .by_node = false, .beside = p, .seed = {}};
  result.beside->backend = "cuda";
  const std::string text = to_text(result, bold);
  EXPECT_NE(text.find("<Side by side>"), std::string::npos);
  EXPECT_NE(text.find("cuda / cpu"), std::string::npos);
  EXPECT_EQ(text.find("<By rank>"), std::string::npos);
  const ordered_json json = to_json(result);
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["operations"][0]["name"], "blocks.*.fc1");
  EXPECT_FALSE(json.contains("nodes") || json.contains("sweep") || json.contains("seed-000"));
  EXPECT_EQ(json["ms_median"], 40);
  EXPECT_EQ(json["runs"], 9);
  EXPECT_EQ(json["peak_gflops"], 100);
  EXPECT_EQ(json["copy_gbps"], 20);
  EXPECT_EQ(json["beside"]["batch"], 4);
  ordered_json row = json["parts"][0];
  EXPECT_EQ(row,
            ordered_json::parse(R"({"name": "MLP", "phase": "forward", "phase_number": 0, "kind": "linear",
      "kernel": "gemm", "nodes": 2, "layers": 2, "ms": 30.0, "flops": 1e9, "bytes": 6e7, "declined": [],
      "ms_per_layer": 15.0})"));
  result.by_node = true;
  EXPECT_EQ(to_json(result)["nodes"][0]["name"], "blocks.0.fc1");
}

// In training the columns are phases, and what ranks exchange is apart whatever its phase.
TEST(ProfileText, RanksHaveTheirColumns) {
  Profile p = profile_of({}, true);
  p.ranks = {{profile_row("MLP", 1, 0, 0), profile_row("norm", 2, 0, 0),
              profile_row("MLP", 4, 0, 0, Phase::kBackward),
              profile_row("communication", 8, 0, 0, Phase::kBackward)},
             {profile_row("optimizer", 16, 0, 0, Phase::kUpdate), profile_row("communication", 32, 0, 0)}};
  const RankTimes times = rank_times_of(p);
  EXPECT_EQ(times.columns, (std::vector<std::string>{"forward", "backward", "communication", "update"}));
  EXPECT_EQ(times.seconds, (std::vector<std::vector<double>>{{3, 4, 8, 0}, {0, 0, 32, 16}}));
  const std::string table = rank_table(p);
  EXPECT_NE(table.find("15.0 s\n"), std::string::npos) << table;
  EXPECT_NE(table.find("48.0 s\n"), std::string::npos) << table;
  p.training = false;
  EXPECT_EQ(rank_times_of(p).columns,
            (std::vector<std::string>{"MLP", "norm", "communication", "optimizer"}));
  p.ranks.clear();
  EXPECT_EQ(rank_table(p), "");
}

TEST(ProfilePage, TilesAndFiguresTellTheNumbers) {
  ProfileResult result{
      .model = "m", .dtype = "f32", .own = profile_of(profile_rows_made(), true), .beside = {}, .seed = {}};
  result.own.parts.push_back(profile_row("communication", 0.005, 0, 0, Phase::kBackward));
  result.own.parts[1].phase = Phase::kUpdate;
  result.own.ranks = {result.own.parts};
  const std::string page = to_page(result);
  for (const char* part : {"median of 9, an update", "40.0 ms", "images a second", "100", "25.1 GFLOP/s",
                           "20.0 GB/s", "backward", "5.00 ms", "a model, on cpu (2 threads)", "Profile of m"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  const Figure layers = layers_of(result.own);
  EXPECT_NE(layers.body.find("0: MLP 10 ms"), std::string::npos) << layers.body;
  EXPECT_NE(layers.body.find("2: MLP 20 ms"), std::string::npos) << layers.body;
  const Figure ranks = ranks_of(result.own);
  for (const char* part : {"rank 0: forward 30 ms an update", "rank 0: communication 5 ms an update",
                           "rank 0: update 10 ms an update"})
    EXPECT_NE(ranks.body.find(part), std::string::npos) << part << ranks.body;
}

TEST(ProfilePage, TheRooflineHasWhatTakesTime) {
  std::vector<ProfileRow> rows = {profile_row("short", 0.00001, 1e9, 1e9), profile_row("idle", 1, 0, 1e9)};
  for (int i = 0; i < 18; ++i)
    rows.push_back(profile_row(("s" + std::to_string(i)).c_str(), 0.1 + 0.01 * i, 1e9, 1e9));
  const Figure figure = roofline_of(profile_of(rows));
  ASSERT_EQ(figure.legend.size(), 16u) << "the sixteen that take most";
  EXPECT_EQ(figure.legend.front().name, "s17");
  EXPECT_EQ(figure.legend.back().name, "s2");
  EXPECT_NE(figure.body.find("measured peak: 100 GFLOP/s"), std::string::npos);
  EXPECT_NE(figure.note.find("memory at 20.0 GB/s"), std::string::npos);
  EXPECT_EQ(roofline_of(profile_of({profile_row("a", 1, 1e9, 1e9, Phase::kBackward)}, true)).legend[0].name,
            "backward a");
  const std::vector<ProfileRow> edge = {profile_row("most", 0.998, 1, 1), profile_row("least", 0.002, 1, 1)};
  EXPECT_EQ(roofline_of(profile_of(edge)).legend.size(), 2u) << "exactly 0.2 %";
}

Sweep sweep_over(const std::vector<std::string>& axes, bool training = false) {
  return run_sweep(parse_sweeps(axes), [&](const SweepValues& values) {
    Profile p = profile_of(profile_rows_made(), training);
    const double n = parse_number(values[0]).value_or(1);
    p.seconds = {.count = 3, .min = 0.3 / n, .median = 0.4 / n, .p90 = 0.5 / n};
    p.parts.push_back(profile_row("MLP", 0.01, 0, 0, Phase::kBackward));
    return p;
  });
}

TEST(SweepTable, SpeedUpsAreAgainstTheFirstRow) {
  const Sweep sweep = sweep_over({"threads=1,2"});
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(
      cells_of_html(to_table(sweep)),
      (Rows{{"threads", "median", "min", "p90", "images/s", "speed-up", "embeddings", "attention", "MLP"},
            {"1", "400 ms", "300 ms", "500 ms", "10.0", "1.00 x", "", "", "40.0 ms"},
            {"2", "200 ms", "150 ms", "250 ms", "20.0", "2.00 x", "", "", "40.0 ms"}}));
  const ordered_json json = to_json(sweep)[1];
  EXPECT_EQ(json["threads"], "2");
  EXPECT_EQ(json["ms_median"], 200);
  EXPECT_EQ(json["ms_min"], 150);
  EXPECT_EQ(json["ms_p90"], 250);
  EXPECT_EQ(json["runs"], 3);
  EXPECT_EQ(json["images_per_second"], 20);
  EXPECT_EQ(json["parts"].size(), 3u);
}

TEST(SweepTable, FiguresAreLinesOverNumbersAndElseBars) {
  const Figure lines = sweep_figure(sweep_over({"threads=4,1,2"}, true));
  EXPECT_EQ(lines.title, "Time of an update");
  for (const char* part : {"measured: 400 at 1<", "measured: 100 at 4<", "data-name=\"ideal\"", ",4,100\""})
    EXPECT_NE(lines.body.find(part), std::string::npos) << part << lines.body;
  const std::string two = sweep_figure(sweep_over({"threads=2,4"})).body;
  const std::string ideal = two.substr(two.find("data-name=\"ideal\""));
  for (const char* part : {",2,200;", ",4,100\""})
    EXPECT_NE(ideal.find(part), std::string::npos) << "from two threads on: " << part << ideal;
  EXPECT_EQ(sweep_figure(sweep_over({"batch=1,2"})).legend.size(), 0u) << "no ideal of batches";
  const Figure bars = sweep_figure(sweep_over({"threads=2", "parallel=heads,all"}));
  EXPECT_EQ(bars.title, "Time of a run");
  for (const char* part : {"2: parallel all 200 ms", "2: parallel heads 200 ms"})
    EXPECT_NE(bars.body.find(part), std::string::npos) << part << bars.body;
}

}  // namespace
}  // namespace vitrail
