// A run or an evaluation as one self-contained HTML page: no network, no fonts, no other files. A section
// appears when it has content. The report receives numbers, names and encoded images; it computes none of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/confusion.h"
#include "telemetry/multi_label.h"
#include "telemetry/page.h"
#include "telemetry/plot/plot.h"
#include "telemetry/rank_times.h"
#include "telemetry/run_status.h"

namespace vitrail {

struct ReportImage {
  std::vector<uint8_t> png;
  std::string name;              // "cat/0001.png"
  std::string label, predicted;  // class names
  double probability = 0;        // of the prediction
};

struct MemoryRow {
  std::string category;  // "parameters"
  uint64_t planned = 0, actual = 0;
};

struct Report {
  std::string title;    // "demo-fashion"
  std::string verdict;  // "86.2 % top-1 on 10,000 images after 2,000 steps"
  PagePairs figures;    // the few numbers that matter, label and value
  std::vector<LineChart> curves;
  std::vector<std::string> classes;  // names
  std::optional<ConfusionMatrix> confusion;
  std::optional<MultiLabelResult> multi_label;
  std::vector<ReportImage> best, worst;
  RankHistory ranks;
  std::vector<MemoryRow> memory;
  PagePairs machine;
  std::vector<RunEvent> events;
  std::string config;     // as resolved, JSON text
  std::string generator;  // "Vitrail 0.2.0"
};

std::string render_report(const Report& report);

}  // namespace vitrail
