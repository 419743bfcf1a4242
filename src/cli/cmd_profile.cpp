#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/profile_report.h"
#include "cli/timing.h"
#include "telemetry/format.h"
#include "telemetry/spread.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

ordered_json rows_json(const std::vector<ProfileRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const ProfileRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"kind", row.kind},
                    {"kernel", row.kernel},
                    {"nodes", row.nodes},
                    {"layers", row.layers},
                    {"ms", row.seconds * 1e3},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"declined", row.declined}});
    if (row.layers > 0) list.back()["ms_per_layer"] = row.seconds * 1e3 / static_cast<double>(row.layers);
  }
  return list;
}

// Empty when threads share all they can.
std::string parallel_text(const ExecutionPlan& plan) {
  const std::pair<const char*, bool> kinds[] = {{"heads", plan.device.parallel_heads},
                                                {"rows", plan.device.parallel_rows},
                                                {"softmax", plan.device.parallel_softmax}};
  if (std::all_of(std::begin(kinds), std::end(kinds), [](const auto& kind) { return kind.second; }))
    return "";
  std::string on;
  for (const auto& [name, is_on] : kinds)
    if (is_on) on += (on.empty() ? "" : " and ") + std::string(name);
  return on.empty() ? ", nothing in parallel" : ", only " + on + " in parallel";
}

void run_profile(const Options& options, Console& console) {
  const ModelChoice choice = choose_model(options, console);
  Engine engine = choice.engine(read_engine_options(options));
  engine.time_nodes(true);
  const ExecutionPlan& plan = engine.plan();
  const double peak = peak_of(plan);
  const Spread seconds = spread_of(time_runs(engine, options, console, "profile"));
  const std::vector<NodeTime>& times = engine.executor().times();
  const std::vector<ProfileRow> parts = profile_rows(plan, times, ProfileBy::kPart);
  const bool nodes = options.text("by") == "node";
  const std::vector<ProfileRow> rows =
      profile_rows(plan, times, nodes ? ProfileBy::kNode : ProfileBy::kOperation);

  console.print_json({{"model", choice.name},
                      {"device", device_text(plan)},
                      {"dtype", options.text("dtype")},
                      {"batch", engine.batch()},
                      {"runs", seconds.count},
                      {"ms_median", seconds.median * 1e3},
                      {"peak_gflops", peak},
                      {"parts", rows_json(parts)},
                      {nodes ? "nodes" : "operations", rows_json(rows)}});
  console.print(strf("%s, batch %lld, in %s on %s%s: %s a run (median of %zu)\n\n",
                     architecture_text(choice.config).c_str(), static_cast<long long>(engine.batch()),
                     options.text("dtype").c_str(), device_text(plan).c_str(), parallel_text(plan).c_str(),
                     format_seconds(seconds.median).c_str(), seconds.count));
  console.print(console.bold("By part of the network") + "\n" +
                profile_table(parts, peak, ProfileColumns::kParts) + "\n");
  console.print(console.bold(nodes ? "By node" : "By operation") + "\n" +
                profile_table(rows, peak, ProfileColumns::kKernels));
  for (const std::string& line : declined_lines(plan)) console.detail(line);
  if (!options.flag("no-fuse"))
    console.say("layer norms and residuals run inside attention and MLP; --no-fuse shows them apart");
}
}  // namespace

Command profile_command() {
  const std::vector<OptionSpec> own = {{.name = "by",
                                        .help = "rows of the second table",
                                        .metavar = "WHAT",
                                        .fallback = "operation",
                                        .choices = {"operation", "node"}}};
  return {{.name = "profile",
           .summary = "where the time goes: per operation time, FLOPs, rate, share of peak",
           .examples = {{"profile -m vit_base_patch16_224",
                         "embeddings, attention, MLP, and every operation below"},
                        {"profile -m vit_base_patch16_224 --no-fuse",
                         "the classic table of times in one layer: embeddings, layer norm, attention, "
                         "residual, layer norm, MLP, residual, each in a row, under \"per layer\""},
                        {"profile --by node --json", "every node of the program for scripts"},
                        {"profile --parallel rows --threads 2", "what one kind of parallelism gives"},
                        {"profile -v", "also why faster kernels declined, where any did"}},
           .options = architecture_options() + own + timing_options() + engine_options(1)},
          run_profile};
}

}  // namespace vitrail::cli
