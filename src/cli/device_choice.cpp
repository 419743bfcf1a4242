#include "cli/device_choice.h"

#include <algorithm>

#include "base/error.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "launch/launch_plan.h"
#include "train/device_transport.h"

namespace vitrail::cli {

namespace {

World opened(const Options& options, const MeshConfig& mesh, RankSession* session) {
  const int ranks = rank_count(options, mesh);
  share_gpu_queues(ranks);
  World world = open_world({ranks, environment_variable});
  if (session) session->open(world);
  return world;
}

ConsoleSettings silenced(ConsoleSettings settings) {
  settings.out_fd = settings.err_fd = ConsoleSettings::kNowhere;
  settings.quiet = true;
  settings.out_terminal = settings.err_terminal = settings.verbose = false;
  return settings;
}

}  // namespace

std::string chosen_backend(const Options& options) {
  return chosen_backend(options, options.text("device"));
}

std::string chosen_backend(const Options& options, const std::string& device) {
  const NamedDevice own = named_device(device, "--device");
  if (own.on_host) return options.text("backend");
  if (options.given("backend") && !names_devices(options.text("backend")))
    throw Error(ErrorKind::kUsage,
                strf("--backend %s runs on the CPU, --device %s does not", options.text("backend").c_str(),
                     device.c_str()),
                "leave one of them out; --check ref compares each step with the reference");
  return own.backend;
}

OptionSpec rank_threads_option() {
  return {.name = "threads",
          .help =
              "threads a rank computes with, or as many numbers as there are ranks: 4,4,2,1; 0 takes its "
              "share of the cores",
          .metavar = "N[,N...]",
          .letter = 't',
          .fallback = "0"};
}

DeviceInfo chosen_device(const Options& options) {
  return chosen_device(options, HostRank());
}

DeviceInfo chosen_device(const Options& options, HostRank seat, RankNumber rank) {
  seat.shares_gpus = ranks_share_gpus(environment_variable);
  DeviceInfo info = device_of_rank(chosen_backend(options), options.text("device"),
                                   threads_of_rank(options.text("threads"), rank.rank, rank.world),
                                   options.text("isa"), seat);
  info.kernels = chosen_kernels(options).table;
  return info;
}

KernelsFile chosen_kernels(const Options& options) {
  return chosen_kernels(options, options.text("device"));
}

KernelsFile chosen_kernels(const Options& options, const std::string& device) {
  return kernels_for(device, options.text("kernels"), config_home());
}

int rank_count(const Options& options, const MeshConfig& mesh) {
  if (options.origin("ranks") != Origin::kDefault || started_as_rank())
    return static_cast<int>(options.integer("ranks"));
  validate(mesh);
  const int64_t places = std::max<int64_t>(mesh.dp, 1) * mesh.tp * mesh.sp * mesh.pp;
  VT_REQUIRE(places <= 4096, ErrorKind::kUsage, "--mesh %s has %lld places; expected at most 4096",
             options.text("mesh").c_str(), static_cast<long long>(places));
  return static_cast<int>(places);
}

OptionSpec deadline_option() {
  return {.name = "deadline",
          .help = "seconds within which a rank that is dead, stopped or cut off ends the job",
          .kind = ValueKind::kNumber,
          .metavar = "S",
          .fallback = "15",
          .least = 1,
          .most = 3600};
}

RankSettings rank_settings(const Options& options) {
  return {options.number("deadline"), static_cast<int>(options.integer("ranks"))};
}

MeshConfig inference_mesh(const Options& options) {
  MeshConfig mesh;
  if (options.given("mesh")) take_mesh(options.text("mesh"), mesh);
  VT_REQUIRE(
      mesh.zero == 0, ErrorKind::kUsage,
      "--mesh zero=%lld shares out what training keeps; an inference has parameters alone, which tp shares",
      static_cast<long long>(mesh.zero));
  VT_REQUIRE(mesh.pp == 1, ErrorKind::kUsage,
             "--mesh pp=%lld is a pipeline, which training has; an inference takes any of dp, tp, sp and "
             "tokens_on_tp",
             static_cast<long long>(mesh.pp));
  return mesh;
}

std::vector<OptionSpec> rank_options() {
  return {
      {.name = "ranks",
       .help =
           "share the work among so many ranks, threads of this process; under mpirun or srun each process "
           "is one; with --mesh as many as it has places",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .fallback = "1",
       .least = 1,
       .most = 4096},
      {.name = "mesh",
       .help = "how ranks share it: dp=2,tp=2 for other images and parts of one model; also sp (tokens) and "
               "tokens_on_tp; other images where nothing is said",
       .metavar = "AXES"},
      deadline_option()};
}

CommandRanks::CommandRanks(const Options& options, Console& console, RankSession* session)
    : InferenceRanks(opened(options, inference_mesh(options), session), inference_mesh(options),
                     [&] {
                       Console nobody(silenced(console.settings()));
                       return choose_model(options, nobody).config.heads;
                     }),
      options_(options),
      console_(console),
      silent_(silenced(console.settings())),
      session_(session) {
  if (size() == 1) return;
  if (options.declared("check") && options.given("check"))
    throw Error(ErrorKind::kUsage, "--check ref compares the nodes of one rank; there are more",
                "without --ranks and --mesh");
  this->console().detail(text());
}

void CommandRanks::require_same(Json facts) {
  for (const char* name : {"batch", "dtype", "backend"})
    facts[std::string("--") + name] = options_.text(name);
  InferenceRanks::require_same(std::move(facts));
}

void CommandRanks::run(const EngineOptions& engine,
                       const std::function<void(InferenceRank&, Console&)>& body) {
  InferenceRank alone;
  if (!session_) return body(alone, console());
  const auto note = [this](const std::string& text) { console().detail(text); };
  try {
    InferenceRanks::run({.engine = engine,
                         .device = [&](const HostRank& seat) { return chosen_device(options_, seat); },
                         .heartbeat = session_->heartbeat(),
                         .variables = environment_variable,
                         .on_note = note},
                        [&](InferenceRank& rank) {
                          Console nobody(silent_.settings());  // consoles are for one thread
                          body(rank, rank.team().leads() ? console() : nobody);
                        });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kStopped || leads()) throw;
    throw EndProcess{exit_code(ErrorKind::kStopped)};
  }
}

void on_ranks(const Options& options, Console& console, const std::function<void(CommandRanks&)>& body) {
  if (!RankSession::needed(rank_count(options, inference_mesh(options)))) {
    CommandRanks alone(options, console, nullptr);
    return body(alone);
  }
  RankSession session(rank_settings(options));
  session.run([&] {
    CommandRanks ranks(options, console, &session);
    body(ranks);
  });
}

}  // namespace vitrail::cli
