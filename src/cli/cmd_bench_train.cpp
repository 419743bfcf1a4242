#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "cli/train_plan.h"
#include "measure/profile_run.h"
#include "train/train_config.h"

namespace vitrail::cli {

namespace {
// The same steps on several ranks; the options of a comparison are for one.
void run_rank_bench(const Options& options, World world, RankSession& session, Console& console) {
  const bool leads = world.ranks[0]->rank() == 0;
  const PlannedRun run = run_to_plan(options);
  const TimingBudget budget = read_timing(options);
  constexpr int64_t kUpdates = 20;
  RankStepsRequest request = steps_request(options, run, world, session);
  request.warmup = budget.warmup;
  request.updates = budget.runs > 0 ? budget.runs : kUpdates;
  request.stop = [&] { return session.signals().wanted(); };
  const RankStepsResult result = time_rank_steps(std::move(world), request);
  if (!leads) return;
  console.print_json(to_json(result));
  if (!result.note.empty()) console.say(result.note);
  console.print(to_text(result));
}

void run_alone(const Options& options, Console& console) {
  const std::optional<SavedBench> saved = read_saved(options);
  const RunPlan plan = planned_run(options, chosen_device(options));
  for (const std::string& note : plan.notes()) console.detail(note);
  BenchResult result = described(plan);
  if (saved) saved->refuse_another(result);
  RankContext rank(plan.device());
  require_step_fits(
      plan.step(), [](int64_t) { return NamedBytes(); }, rank.available());
  if (!plan.device().shares_host_memory) require_host_room(plan.step(), 0);
  result.foreign_bytes = rank.hardware->foreign_bytes();
  const bool profiling = options.flag("profile");
  const Peaks peaks = profiling ? peaks_of(plan.step().micro) : Peaks{.gflops = peak_of(plan.step().micro)};
  result.peak_gflops = peaks.gflops;
  SyntheticSteps steps(plan, rank);
  const TimingBudget budget = read_timing(options);
  double began = 0;
  const std::vector<double> seconds = [&] {
    BenchProgress progress(console, "bench", budget.runs);
    return time_calls(
        budget, [&] { steps.run(); }, progress.hooks([&] {
          steps.reset_times();
          began = now_s();
        }));
  }();
  result.seconds = spread_of(seconds);
  const int64_t steps_run = steps.steps();
  const double loss = steps.loss_share();
  nlohmann::ordered_json json = training_facts(plan);
  json["loss"] = loss;
  json["memory_allocated"] = steps.allocated_bytes();
  json["began_s"] = began;
  if (seconds.size() <= kMostTold)
    for (const double second : seconds) json["ms_each"].push_back(1e3 * second);
  report_bench(result, saved, options,
               {{"training", training_text(plan)},
                {"loss", strf("%.4f after %lld steps", loss, static_cast<long long>(steps_run))}},
               json, console);
  if (!profiling) return;
  if (plan.device().records_graphs) steps.time_nodes();
  console.print(step_tables(steps, peaks, [&](const std::string& title) { return console.bold(title); }));
}

void run_bench_train(const Options& options, Console& console) {
  const int64_t ranks = options.integer("ranks");
  if (!RankSession::needed(ranks)) return run_alone(options, console);
  RankSession session(rank_settings(options));
  session.run([&] {
    World world = open_world({static_cast<int>(ranks), environment_variable});
    session.open(world);
    if (world.size > 1) return run_rank_bench(options, std::move(world), session, console);
    run_alone(options, console);
  });
}

// Returns --batch, --backend and --isa; the other options of an engine are for inference alone.
std::vector<OptionSpec> step_options() {
  std::vector<OptionSpec> options;
  for (OptionSpec& spec : engine_options(1)) {
    if (spec.name == "batch") {
      spec.help = "images computed at once (train.micro_batch)";
      spec.fallback.clear();
      spec.usual = "the config's, else 64";
    }
    if (spec.name == "batch" || spec.name == "backend" || spec.name == "isa") options.push_back(spec);
  }
  for (OptionSpec& spec : train_plan_options())
    if (spec.name != "train") options.push_back(spec);
  return options;
}
}  // namespace

Command bench_train_command() {
  const std::vector<OptionSpec> own = {
      {.name = "steps",
       .help = "time this many steps instead of --seconds; 0: by time",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .fallback = "0",
       .least = 0,
       .most = 1e6},
      {.name = "ranks",
       .help = "so many ranks, threads of this process, share every batch; under mpirun each process is one",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .fallback = "1",
       .least = 1,
       .most = 4096},
      deadline_option(),
      {.name = "profile", .help = "also where the time goes, by operation", .kind = ValueKind::kFlag},
      {.name = "dtype",
       .help = "train.dtype: f32, or bf16 or f16 with f32 master weights; on a GPU also fp8 and tf32",
       .metavar = "TYPE",
       .fallback = "f32",
       .choices = field_spec<ComputeType>("train.dtype", "").choices}};
  CommandSpec spec{
      .name = "bench train",
      .summary = "speed of training: whole steps (forward, backward, update) without a loader",
      .examples = {{"bench train -m vit_small_patch16_224 --batch 8 --classes 10", "synthetic images"},
                   {"bench train --config configs/demo-fashion.json",
                    "a recipe's model, batch and optimizer"},
                   {"bench train -m vit_tiny_patch16_224 --batch 16 --profile", "where the time goes"},
                   {"bench train -m vit_base_patch16_224 --batch 256 --device cuda --dtype bf16", "on a GPU"},
                   {"bench train -m vit_tiny_patch16_224 --batch 8 --ranks 2 --threads 1",
                    "two ranks of one thread: throughput, and what they spend on each other"},
                   {"bench train --json > before.json", "keep a result; --compare before.json later"}},
      .options = architecture_options() + timing_options() + own + comparison_options() + step_options()};
  add_train_settings(spec);
  return {spec, run_bench_train};
}

}  // namespace vitrail::cli
