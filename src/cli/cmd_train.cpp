#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/process_mark.h"
#include "base/run_files.h"
#include "base/text.h"
#include "base/timing.h"
#include "base/values.h"
#include "cli/commands.h"
#include "cli/deepspeed_choice.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "cli/train_display.h"
#include "cli/train_settings.h"
#include "io/find_model.h"
#include "launch/rank_session.h"
#include "measure/device_check.h"
#include "measure/host.h"
#include "telemetry/format.h"
#include "train/run_trainers.h"
#include "train/train_config.h"

namespace vitrail::cli {

namespace {

// Parses "55m", "90s", "2h", "1.5h" or plain minutes.
double minutes_of(const std::string& text) {
  const double factor = text.ends_with('s') ? 1.0 / 60 : text.ends_with('h') ? 60 : 1;
  const bool unit =
      !text.empty() && !std::isdigit(static_cast<unsigned char>(text.back())) && text.back() != '.';
  const auto number = parse_number(unit ? text.substr(0, text.size() - 1) : text);
  if (!number || *number <= 0 ||
      (unit && std::string_view("smh").find(text.back()) == std::string_view::npos))
    throw Error(ErrorKind::kUsage, strf("--max-time %s is no time", quoted(text).c_str()),
                "seconds, minutes or hours, as 90s, 55m or 1.5h; a number alone is minutes");
  return *number * factor;
}

std::string run_name(const Options& options) {
  const std::string& config = options.text("config");
  const size_t slash = config.find_last_of('/');
  const std::string file = slash == std::string::npos ? config : config.substr(slash + 1);
  const std::string stem = file.substr(0, file.find_last_of('.'));
  return "runs/" + (stem.empty() ? "run" : stem);
}

// Returns an empty path where the working folder was removed.
std::string working_folder() {
  std::error_code gone;
  return std::filesystem::current_path(gone).string();
}

ResumeMode resume_mode(const Options& options) {
  if (!options.given("resume")) return ResumeMode::kFresh;
  const std::string& text = options.text("resume");
  return text == "strict" ? ResumeMode::kStrict : ResumeMode::kNewest;
}

TrainHooks hooks_for(TrainDisplay& display, Console& console, const SignalGuard& stop) {
  TrainHooks hooks;
  hooks.step = [&](const TrainStatus& status) { display.step(status); };
  hooks.logged = [&](const TrainStatus& status) { display.logged(to_json(status)); };
  hooks.eval = [&](const EvalStatus& status) {
    display.eval(status);
    display.logged(to_json(status));
  };
  hooks.event = [&](const RunEvent& event) {
    display.event(event);
    display.logged(to_json(event));
  };
  hooks.timing = [&](const TimingStatus& status) { display.logged(to_json(status)); };
  hooks.start = [&](const StartStatus& status) { display.logged(to_json(status)); };
  hooks.note = [&](const std::string& text) { console.say(text); };
  hooks.stop = [&] { return stop.wanted(); };
  return hooks;
}

// The run's folder, and how long this process has lived by now.
TrainPlace place_of(const Options& options) {
  TrainPlace place{options.given("out") ? options.text("out") : run_name(options), resume_mode(options),
                   std::string("Vitrail ") + VITRAIL_VERSION, Clock::now(), working_folder()};
  place.check_whole = options.given("check");
  place.phases_before.emplace_back("process", ProcessMark::current().age_s());
  return place;
}

World open_ranks(const Options& options, RankSession& session, TrainPlace& place) {
  const auto start = Clock::now();
  World world = open_world({static_cast<int>(options.integer("ranks")), environment_variable});
  session.open(world);
  const bool mpi = std::string_view(world.transport) == "mpi";
  place.phases_before.emplace_back(mpi ? "MPI" : "ranks", seconds_since(start));
  if (session.heartbeat()) session.heartbeat()->in_folder(place.folder);
  return world;
}

void report_end(const TrainOutcome& outcome, const TrainPlace& place, Console& console) {
  if (!outcome.finished)
    throw Error(ErrorKind::kStopped,
                strf("%s at step %s; everything is saved in %s", outcome.reason.c_str(),
                     format_integer(outcome.step).c_str(), place.folder.c_str()),
                "--resume goes on from there");
  std::string text = strf("done: %s, step %s", outcome.reason.c_str(), format_integer(outcome.step).c_str());
  if (outcome.best >= 0) text += strf(", best %s", format_percent(outcome.best).c_str());
  if (outcome.reported) text += "; see " + RunFiles(place.folder).report();
  console.say(text);
}

void run_session(const Options& options, Console& console, RankSession& session) {
  TrainPlace place = place_of(options);
  TrainConfig config = read_train_config(options);
  if (options.given("max-time")) config.train.max_minutes = minutes_of(options.text("max-time"));
  World world = open_ranks(options, session, place);
  const bool leads = world.ranks[0]->rank() == 0, mpi = std::string_view(world.transport) == "mpi";
  const DeepSpeedReading deepspeed = with_deepspeed(options, config, world.size);
  config = deepspeed.config;
  if (leads) say_notes(deepspeed, options, console);
  // The config is resolved before the run starts, so that a mistake in it creates no folder.
  const TrainConfig whole = resolved(config, world.size);
  require_same_run(world, to_json(whole), place.generator);
  const int first = world.ranks[0]->rank();
  const auto device = [&](int i) {  // one that is absent is told at once
    return chosen_device(options, world.seat().after(i), {first + i, world.size});
  };
  const std::vector<RankSeat> seats = seats_of(world, whole.mesh, device);
  if (leads && world.size > 1) {
    console.say(world_text(world, whole.mesh));
    console.say(seat_table(seats));
  }
  TrainDisplay display(console);
  TrainHooks hooks = hooks_for(display, console, session.signals());
  if (leads && !is_reference(options.text("backend")))
    hooks.predict =
        update_predictor(device(0), options.text("target"), shipped_places("devices", "configs/devices"));
  LocalRanks local{.worlds = std::move(world.ranks),
                   .mesh = whole.mesh,
                   .device = device,
                   .seed = static_cast<uint64_t>(whole.train.seed),
                   .sharing = world.local_size,
                   .overlapping = world.overlapping,
                   .heartbeat = session.heartbeat(),
                   .variables = environment_variable,
                   .on_note = [&](const std::string& text) { console.say(text); }};
  // The first rank gets signals, under MPI each; whether it talks is the trainer's matter.
  const auto hooks_of = [&](int rank) {
    TrainHooks own = rank == 0 || mpi ? hooks : TrainHooks{};
    own.disturb = bit_fault(rank);
    return own;
  };
  const TrainOutcome outcome =
      run_trainers(std::move(local), config, place, chosen_backend(options), hooks_of);
  display.finish();
  if (leads) return report_end(outcome, place, console);
  if (!outcome.finished) throw EndProcess{exit_code(ErrorKind::kStopped)};  // the first rank tells it
}

void run(const Options& options, Console& console) {
  RankSession session(rank_settings(options));
  session.run([&] { run_session(options, console, session); });
}

}  // namespace

Command train_command() {
  CommandSpec spec{
      .name = "train",
      .summary = "train a ViT from scratch or fine-tune one; resumable at any moment",
      .examples = {{"train --config configs/demo-fashion.json", "a small ViT on Fashion-MNIST, two minutes"},
                   {"train --set model.init=deit_tiny_patch16_224 --set data.train=folder:pets --set "
                    "train.epochs=5 --out runs/pets",
                    "fine-tune a pretrained model on a folder of images"},
                   {"train --config configs/demo-fashion.json --device cuda --dtype bf16", "on a GPU"},
                   {"train --config configs/demo-fashion.json --ranks 2", "two ranks share every batch"},
                   {"train --config run.json --deepspeed ds.json --ranks 2",
                    "with the settings of a DeepSpeed JSON"},
                   {"train --config configs/demo-fashion.json --resume", "go on after an interruption"}},
      .options = {
          {.name = "out",
           .help = "the run's folder, missing, empty or this run's own; runs/NAME of the config otherwise",
           .metavar = "DIR",
           .letter = 'o'},
          {.name = "resume",
           .help = "go on from the newest good checkpoint; =strict refuses a damaged one",
           .metavar = "MODE",
           .choices = {"newest", "strict"},
           .implied = "newest"},
          {.name = "max-time",
           .help = "stop with a checkpoint so long after the start (55m, 2h), exit code 75",
           .metavar = "TIME"},
          {.name = "ranks",
           .help =
               "train as so many ranks, threads of this process; under mpirun or srun each process is one",
           .kind = ValueKind::kInteger,
           .metavar = "N",
           .fallback = "1",
           .least = 1,
           .most = 4096},
          deepspeed_option(),
          {.name = "target",
           .help = "the device file that predicts an update; otherwise one that describes this machine",
           .metavar = "DEVICE"},
          deadline_option(),
          {.name = "check",
           .help = "compare the first micro-batch of several ranks with an unsharded one, node by node",
           .metavar = "WITH",
           .choices = {"whole"}},
          rank_threads_option(),
          {.name = "dtype",
           .help = "train.dtype: f32, or bf16 or f16 with f32 master weights; on a GPU also fp8 and tf32",
           .metavar = "TYPE",
           .fallback = "f32",
           .choices = field_spec<ComputeType>("train.dtype", "").choices},
          {.name = "backend",
           .help = "cpu or ref",
           .metavar = "NAME",
           .fallback = "cpu",
           .choices = {"cpu", "ref"}},
          isa_option()}};
  for (OptionSpec& setting : train_settings()) spec.options.push_back(std::move(setting));
  return {spec, run};
}

}  // namespace vitrail::cli
