#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "cli/train_plan.h"
#include "io/cards/card_text.h"
#include "launch/child_process.h"
#include "measure/profile_page.h"

namespace vitrail::cli {

namespace {
constexpr const char* kSeed = "seed-000";  // bench/seed_000

SeedTimes seed_times(int threads, Console& console) {
  const std::string program =
      own_program("vitrail-seed-000", "it is built where Eigen is: apt install libeigen3-dev, then make");
  console.say(
      strf("seed-000 computes one layer, unoptimised, on %d cores: half a minute to two minutes", threads));
  return read_seed_times(output_of({program, "--cores", std::to_string(threads)}));
}

// Holds what the command measures, and the files it writes.
struct Session {
  explicit Session(const Options& given) : options(given), axes(parse_sweeps(given.list("sweep"))) {
    // The file is opened first, so that a path that cannot be written fails at once.
    if (options.given("trace")) trace.emplace(options.text("trace"));
    if (options.given("html")) html.emplace(options.text("html"));
  }
  void require_one_rank(int ranks) const {
    for (const char* name : {"beside", "sweep", "trace"})
      VT_REQUIRE(ranks == 1 || !options.given(name), ErrorKind::kUsage, "--%s is for one rank; there are %d",
                 name, ranks);
  }
  void finish(const std::string& model, const Profile& own, Console& console) {
    result.model = model;
    result.dtype = options.text("dtype");
    result.own = own;
    result.by_node = options.text("by") == "node";
    console.print_json(to_json(result));
    console.print(to_text(result, [&](const std::string& title) { return console.bold(title); }));
    if (html) write(*html, to_file(result, options.text("html")), "html", "", console);
  }
  void write(AtomicFile& file, const std::string& text, const char* option, const char* advice,
             Console& console) {
    file.write(text);
    file.commit();
    console.say("written to " + options.text(option) + advice);
  }

  const Options& options;
  std::vector<SweepAxis> axes;
  std::optional<AtomicFile> trace, html;
  ProfileResult result;
};

ProfiledEngine measured(const ModelChoice& choice, const EngineOptions& settings, const Options& options,
                        Console& console, const Team& team = Team(nullptr)) {
  BenchProgress progress(console, "profile", 0);
  ProfiledEngine result(choice.engine(settings), read_timing(options), progress.hooks(), team);
  result.profile.what = strf("%s, batch %lld, in %s", architecture_text(choice.config).c_str(),
                             static_cast<long long>(result.engine.batch()), options.text("dtype").c_str());
  return result;
}

void profile_model(Session& session, const ModelChoice& choice, const InferenceRank& rank, Console& console) {
  const Options& options = session.options;
  const EngineOptions settings = read_engine_options(options);
  const std::string beside = options.given("beside") ? options.text("beside") : "";
  if (beside == kSeed) require_like_seed(choice.config, options.integer("batch"));
  const ProfiledEngine own = measured(choice, rank.on_rank(settings), options, console, rank.team());
  if (!rank.team().leads()) return;
  std::optional<ProfiledEngine> other;
  if (beside == kSeed)
    session.result.seed = seed_times(own.engine.plan().device.threads, console);
  else if (!beside.empty())
    other.emplace(measured(choice, read_engine_options(options, beside), options, console));
  if (other) session.result.beside = other->profile;
  session.result.sweep = run_sweep(session.axes, [&](const SweepValues& values) {
    EngineOptions swept = settings;
    apply(session.axes, values, options.text("device"), swept);
    return measured(choice, swept, options, console).profile;
  });
  session.finish(choice.name, own.profile, console);
  std::vector<const ProfiledEngine*> sides = {&own};
  if (other) sides.push_back(&*other);
  if (session.trace)
    session.write(*session.trace, timeline_of(sides), "trace",
                  ": open it in chrome://tracing or ui.perfetto.dev", console);
  for (const std::string& line : declined_lines(own.engine.plan())) console.detail(line);
  if (!options.flag("no-fuse"))
    console.say("layer norms and residuals run inside attention and MLP; --no-fuse shows them apart");
}

Profile profile_alone(PlannedRun run, DeviceInfo device, const Session& session, const SweepValues& values,
                      Console& console) {
  if (!values.empty()) apply(session.axes, values, run.config, device);
  const RunPlan plan = planned_run(run, session.options, device);
  RankContext rank(plan.device());
  BenchProgress progress(console, "profile", 0);
  return profile_training(plan, rank, read_timing(session.options), progress.hooks());
}

void profile_steps(Session& session, Console& console) {
  const Options& options = session.options;
  const PlannedRun run = run_to_plan(options);
  const std::string& name = options.text("model");
  const int ranks = rank_count(options, run.config.mesh);
  VT_REQUIRE(!options.given("beside") && !session.trace, ErrorKind::kUsage,
             "--beside and --trace are for an inference; --train has neither");
  session.require_one_rank(ranks);
  if (!RankSession::needed(ranks)) {
    const DeviceInfo device = chosen_device(options);
    const Profile own = profile_alone(run, device, session, {}, console);
    session.result.sweep = run_sweep(session.axes, [&](const SweepValues& values) {
      return profile_alone(run, device, session, values, console);
    });
    return session.finish(name, own, console);
  }
  RankSession group(rank_settings(options));
  group.run([&] {
    World world = open_world({ranks, environment_variable});
    group.open(world);
    const RankStepsRequest request = steps_request(options, run, world, group);
    const std::optional<Profile> own = profile_ranks(std::move(world), request, read_timing(options));
    if (own) session.finish(name, *own, console);
  });
}

void run_profile(const Options& options, Console& console) {
  Session session(options);
  if (asks_for_training(options)) return profile_steps(session, console);
  on_ranks(options, console, [&](CommandRanks& ranks) {
    session.require_one_rank(ranks.size());
    const ModelChoice choice = choose_model(options, ranks.console());
    if (ranks.size() > 1) ranks.require_same({{"the model", choice.name}});
    ranks.run(read_engine_options(options),
              [&](InferenceRank& rank, Console& own) { profile_model(session, choice, rank, own); });
  });
}
}  // namespace

Command profile_command() {
  const std::vector<OptionSpec> own = {
      {.name = "by",
       .help = "rows of the last table",
       .metavar = "WHAT",
       .fallback = "operation",
       .choices = {"operation", "node"}},
      {.name = "beside",
       .help =
           "a second device, cpu or cuda[:i]: one table of both; or seed-000: an unoptimised Eigen program "
           "that reproduces the times of a paper (docs/benchmarking.md)",
       .metavar = "DEVICE"},
      {.name = "sweep",
       .help = "also measure with each of these values of threads, parallel (heads, rows, softmax, joined by "
               "+, all, "
               "none), batch or dtype; several multiply",
       .metavar = "NAME=LIST",
       .repeated = true},
      {.name = "html",
       .help = "also write a page: roofline, layers, sweep, tables; FILE.svg: one figure",
       .metavar = "FILE"},
      {.name = "trace",
       .help = "also write the run as a timeline for Chrome or Perfetto",
       .metavar = "FILE"}};
  std::vector<OptionSpec> training = train_plan_options();
  std::erase_if(training, [](const OptionSpec& spec) { return spec.name == "mesh"; });
  CommandSpec spec{
      .name = "profile",
      .summary = "where the time goes: time, FLOPs, bytes, rate, distance to the roofline",
      .examples = {{"profile -m vit_base_patch16_224",
                    "embeddings, attention, MLP, their steps, and every operation"},
                   {"profile -m vit_base_patch16_224 --no-fuse",
                    "the classic table of times in one layer: embeddings, layer norm, attention, "
                    "residual, layer norm, MLP, residual, each in a row, under \"per layer\""},
                   {"profile --train -m vit_tiny_patch16_224 --batch 8 --classes 10",
                    "an update: forward, backward and optimizer; --config takes a recipe"},
                   {"profile --sweep threads=1,2,4 --sweep parallel=heads,rows,all --html p.html",
                    "what each kind of parallelism gives, as table and figure"},
                   {"profile --mesh tp=3 --threads 1", "one model on three ranks: the time of each"},
                   {"profile -m vit_base_patch16_224 --no-fuse --device cuda --beside cpu",
                    "that table for the GPU and the processor, side by side"},
                   {"profile -m vit_base_patch16_224 --no-fuse --beside seed-000",
                    "that table as published, its program run here, and what its times are made of"},
                   {"profile --trace run.json", "a timeline: open it in chrome://tracing"},
                   {"profile --by node --json", "every node of the program for scripts"},
                   {"profile -v", "also why faster kernels declined, where any did"}},
      .options =
          architecture_options() + training + own + timing_options() + engine_options(1) + rank_options(),
      .infers = true};
  add_train_settings(spec);
  return {spec, run_profile};
}

}  // namespace vitrail::cli
