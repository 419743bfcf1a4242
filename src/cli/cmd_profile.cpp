#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/spread.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "measure/profile.h"
#include "measure/trace.h"
#include "telemetry/format.h"

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
                    {"layers", row.layers()},
                    {"ms", row.seconds * 1e3},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"declined", row.declined}});
    if (row.layers() > 0) list.back()["ms_per_layer"] = 1e3 * row.seconds_per_layer();
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

// One device's engine, measured.
struct Measured {
  Measured(const ModelChoice& choice, const Options& options, const std::string& device, Console& console)
      : engine(choice.engine(read_engine_options(options, device))) {
    engine.time_nodes(true);
    peaks = peaks_of(engine.plan());
    BenchProgress progress(console, "profile", 0);
    seconds = spread_of(time_runs(engine, read_timing(options), progress.hooks()));
    parts = rows(ProfileBy::kPart);
  }

  std::vector<ProfileRow> rows(ProfileBy by) const {
    return profile_rows(engine.plan(), engine.executor().times(), by);
  }
  std::string device() const { return device_text(engine.plan()); }
  const char* backend() const { return engine.plan().backend->name(); }

  Engine engine;
  Peaks peaks;
  Spread seconds;
  std::vector<ProfileRow> parts;
};

ordered_json as_json(const Measured& m) {
  return {{"device", m.device()},          {"batch", m.engine.batch()},
          {"runs", m.seconds.count},       {"ms_median", m.seconds.median * 1e3},
          {"peak_gflops", m.peaks.gflops}, {"copy_gbps", m.peaks.gbps},
          {"parts", rows_json(m.parts)}};
}

void print_side(const Measured& m, const Options& options, const ModelChoice& choice, Console& console) {
  const ExecutionPlan& plan = m.engine.plan();
  const std::string most = m.peaks.gflops > 0
                               ? strf("at most %sFLOP/s, %sB/s", format_si(1e9 * m.peaks.gflops).c_str(),
                                      format_si(1e9 * m.peaks.gbps).c_str())
                               : std::string("peaks unknown: the card has no room to measure them");
  console.print(strf("%s, batch %lld, in %s on %s%s: %s a run (median of %zu); %s\n",
                     architecture_text(choice.config).c_str(), static_cast<long long>(m.engine.batch()),
                     options.text("dtype").c_str(), m.device().c_str(), parallel_text(plan).c_str(),
                     format_seconds(m.seconds.median).c_str(), m.seconds.count, most.c_str()));
}

void write_trace(const std::vector<const Measured*>& sides, AtomicFile& file) {
  ordered_json events = ordered_json::array();
  for (size_t i = 0; i < sides.size(); ++i)
    for (ordered_json& event : trace_events(sides[i]->engine.plan(), sides[i]->engine.executor().times(),
                                            sides[i]->device(), static_cast<int>(i) + 1))
      events.push_back(std::move(event));
  file.write(json_text(events) + "\n");
  file.commit();
}

void print_tables(const Measured& m, const std::vector<ProfileRow>& rows, bool nodes, Console& console) {
  console.print("\n" + console.bold("By part of the network") + "\n" +
                profile_table(m.parts, m.peaks, ProfileColumns::kParts) + "\n");
  console.print(console.bold(nodes ? "By node" : "By operation") + "\n" +
                profile_table(rows, m.peaks, ProfileColumns::kKernels));
}

void run_profile(const Options& options, Console& console) {
  std::optional<AtomicFile> trace;  // before the work: one that cannot be written is known at once
  if (options.given("trace")) trace.emplace(options.text("trace"));
  const ModelChoice choice = choose_model(options, console);
  const Measured own(choice, options, options.text("device"), console);
  std::optional<Measured> other;
  if (options.given("beside")) other.emplace(choice, options, options.text("beside"), console);
  const bool nodes = options.text("by") == "node";
  const std::vector<ProfileRow> rows = own.rows(nodes ? ProfileBy::kNode : ProfileBy::kOperation);

  ordered_json json = {{"model", choice.name}, {"dtype", options.text("dtype")}};
  json.update(as_json(own));
  json[nodes ? "nodes" : "operations"] = rows_json(rows);
  if (other) json["beside"] = as_json(*other);
  console.print_json(json);
  print_side(own, options, choice, console);
  if (other) {
    print_side(*other, options, choice, console);
    console.print(
        "\n" + console.bold("Side by side") + "\n" +
        beside_table({own.backend(), own.parts, own.peaks}, {other->backend(), other->parts, other->peaks}));
  }
  print_tables(own, rows, nodes, console);
  if (trace) {
    std::vector<const Measured*> sides = {&own};
    if (other) sides.push_back(&*other);
    write_trace(sides, *trace);
    console.say("written to " + options.text("trace") + ": open it in chrome://tracing or ui.perfetto.dev");
  }
  for (const std::string& line : declined_lines(own.engine.plan())) console.detail(line);
  if (!options.flag("no-fuse"))
    console.say("layer norms and residuals run inside attention and MLP; --no-fuse shows them apart");
}
}  // namespace

Command profile_command() {
  const std::vector<OptionSpec> own = {
      {.name = "by",
       .help = "rows of the second table",
       .metavar = "WHAT",
       .fallback = "operation",
       .choices = {"operation", "node"}},
      {.name = "beside", .help = "a second device, cpu or cuda[:i]: one table of both", .metavar = "DEVICE"},
      {.name = "trace",
       .help = "also write the run as a timeline for Chrome or Perfetto",
       .metavar = "FILE"}};
  return {{.name = "profile",
           .summary = "where the time goes: per operation time, FLOPs, rate, share of peak",
           .examples = {{"profile -m vit_base_patch16_224",
                         "embeddings, attention, MLP, and every operation below"},
                        {"profile -m vit_base_patch16_224 --no-fuse",
                         "the classic table of times in one layer: embeddings, layer norm, attention, "
                         "residual, layer norm, MLP, residual, each in a row, under \"per layer\""},
                        {"profile -m vit_base_patch16_224 --no-fuse --device cuda --beside cpu",
                         "that table for the GPU and the processor, side by side"},
                        {"profile --trace run.json", "a timeline: open it in chrome://tracing"},
                        {"profile --by node --json", "every node of the program for scripts"},
                        {"profile --parallel rows --threads 2", "what one kind of parallelism gives"},
                        {"profile -v", "also why faster kernels declined, where any did"}},
           .options = architecture_options() + own + timing_options() + engine_options(1)},
          run_profile};
}

}  // namespace vitrail::cli
