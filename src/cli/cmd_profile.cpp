#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "io/cards/card_text.h"
#include "launch/child_process.h"
#include "measure/profile_run.h"
#include "measure/seed_table.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

ProfiledEngine measured(const ModelChoice& choice, const Options& options, const std::string& device,
                        Console& console) {
  BenchProgress progress(console, "profile", 0);
  return {choice.engine(read_engine_options(options, device)), read_timing(options), progress.hooks()};
}

void print_side(const ProfiledEngine& m, const Options& options, const ModelChoice& choice,
                Console& console) {
  const std::string most = m.peaks.gflops > 0
                               ? strf("at most %sFLOP/s, %sB/s", format_si(1e9 * m.peaks.gflops).c_str(),
                                      format_si(1e9 * m.peaks.gbps).c_str())
                               : std::string("peaks unknown: the GPU has no room to measure them");
  console.print(strf("%s, batch %lld, in %s on %s%s: %s a run (median of %zu); %s\n",
                     architecture_text(choice.config).c_str(), static_cast<long long>(m.engine.batch()),
                     options.text("dtype").c_str(), m.device().c_str(), m.parallel_text().c_str(),
                     format_seconds(m.seconds.median).c_str(), m.seconds.count, most.c_str()));
}

void print_tables(const ProfiledEngine& m, const std::vector<ProfileRow>& rows, bool nodes,
                  Console& console) {
  console.print("\n" + console.bold("By part of the network") + "\n" +
                profile_table(m.parts, m.peaks, ProfileColumns::kParts) + "\n");
  console.print(console.bold(nodes ? "By node" : "By operation") + "\n" +
                profile_table(rows, m.peaks, ProfileColumns::kKernels));
}

void write_trace(AtomicFile& file, const ProfiledEngine& own, const std::optional<ProfiledEngine>& other,
                 const std::string& path, Console& console) {
  std::vector<const ProfiledEngine*> sides = {&own};
  if (other) sides.push_back(&*other);
  file.write(timeline_of(sides));
  file.commit();
  console.say("written to " + path + ": open it in chrome://tracing or ui.perfetto.dev");
}

constexpr const char* kSeed = "seed-000";  // bench/seed_000

// Nothing but ViT-Base on one image can stand beside it.
void require_like_seed(const VitConfig& model, int64_t batch) {
  const bool alike = model.width == 768 && model.heads == 12 && model.mlp == 3072 && batch == 1 &&
                     model.grid_height() * model.grid_width() == 196;
  if (!alike)
    throw Error(ErrorKind::kUsage,
                strf("seed-000 is ViT-Base at 224 px with batch 1; this is %s with batch %lld",
                     architecture_text(model).c_str(), static_cast<long long>(batch)),
                "vitrail profile -m vit_base_patch16_224 --no-fuse --beside seed-000");
}

SeedTimes seed_times(int threads, Console& console) {
  const std::string program =
      own_program("vitrail-seed-000", "it is built where Eigen is: apt install libeigen3-dev, then make");
  console.say(
      strf("seed-000 computes one layer, unoptimised, on %d cores: half a minute to two minutes", threads));
  return read_seed_times(output_of({program, "--cores", std::to_string(threads)}));
}

void run_profile(const Options& options, Console& console) {
  std::optional<AtomicFile> trace;  // opened first, so that a path that cannot be written fails at once
  if (options.given("trace")) trace.emplace(options.text("trace"));
  const ModelChoice choice = choose_model(options, console);
  const bool beside_seed = options.given("beside") && options.text("beside") == kSeed;
  if (beside_seed) require_like_seed(choice.config, options.integer("batch"));
  const ProfiledEngine own = measured(choice, options, options.text("device"), console);
  std::optional<ProfiledEngine> other;
  std::optional<SeedTimes> seed;
  if (beside_seed)
    seed = seed_times(own.engine.plan().device.threads, console);
  else if (options.given("beside"))
    other.emplace(measured(choice, options, options.text("beside"), console));
  const bool nodes = options.text("by") == "node";
  const std::vector<ProfileRow> rows = own.rows(nodes ? ProfileBy::kNode : ProfileBy::kOperation);

  ordered_json json = {{"model", choice.name}, {"dtype", options.text("dtype")}};
  json.update(to_json(own));
  json[nodes ? "nodes" : "operations"] = to_json(rows);
  if (other) json["beside"] = to_json(*other);
  if (seed) json[kSeed] = to_json(*seed);
  console.print_json(json);
  print_side(own, options, choice, console);
  if (other) {
    print_side(*other, options, choice, console);
    console.print(
        "\n" + console.bold("Side by side") + "\n" +
        beside_table({own.backend(), own.parts, own.peaks}, {other->backend(), other->parts, other->peaks}));
  }
  if (seed)
    console.print("\n" + console.bold("Table I of the paper") + "\n" + seed_table(*seed, own.parts) + "\n" +
                  seed_explanation(*seed));
  print_tables(own, rows, nodes, console);
  if (trace) write_trace(*trace, own, other, options.text("trace"), console);
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
      {.name = "beside",
       .help =
           "a second device, cpu or cuda[:i]: one table of both; or seed-000: an unoptimised Eigen program "
           "that reproduces the times of a paper (docs/benchmarking.md)",
       .metavar = "DEVICE"},
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
                        {"profile -m vit_base_patch16_224 --no-fuse --beside seed-000",
                         "that table as published, its program run here, and what its times are made of"},
                        {"profile --trace run.json", "a timeline: open it in chrome://tracing"},
                        {"profile --by node --json", "every node of the program for scripts"},
                        {"profile --parallel rows --threads 2", "what one kind of parallelism gives"},
                        {"profile -v", "also why faster kernels declined, where any did"}},
           .options = architecture_options() + own + timing_options() + engine_options(1)},
          run_profile};
}

}  // namespace vitrail::cli
