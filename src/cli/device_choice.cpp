#include "cli/device_choice.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/environment.h"
#include "dist/nccl_world.h"
#include "train/agreement.h"

namespace vitrail::cli {

namespace {

// Where nobody says how many, there are as many ranks as the mesh has places.
int wanted_ranks(const Options& options, const MeshConfig& mesh) {
  if (options.origin("ranks") != Origin::kDefault || started_as_rank())
    return static_cast<int>(options.integer("ranks"));
  validate(mesh);
  const int64_t places = std::max<int64_t>(mesh.dp, 1) * mesh.tp * mesh.sp;
  VT_REQUIRE(places <= 4096, ErrorKind::kUsage, "--mesh %s has %lld places; expected at most 4096",
             options.text("mesh").c_str(), static_cast<long long>(places));
  return static_cast<int>(places);
}

ConsoleSettings silenced(ConsoleSettings settings, int nowhere) {
  settings.out_fd = settings.err_fd = nowhere;
  settings.quiet = true;
  settings.out_terminal = settings.err_terminal = settings.verbose = false;
  return settings;
}

}  // namespace

const char* chosen_backend(const Options& options) {
  return chosen_backend(options, options.text("device"));
}

const char* chosen_backend(const Options& options, const std::string& device) {
  if (!parse_cuda(device)) return find_backend(options.text("backend")).name();
  if (options.given("backend") && options.text("backend") != "cpu")
    throw Error(ErrorKind::kUsage,
                strf("--backend %s runs on the CPU, --device %s does not", options.text("backend").c_str(),
                     device.c_str()),
                "leave one of them out; --check ref compares each step with the reference");
  return device_backend(device).name();
}

DeviceChoice chosen_device(const Options& options) {
  return chosen_device(options, 0, 1);
}

DeviceChoice chosen_device(const Options& options, int local, int sharing) {
  const std::string backend = chosen_backend(options);
  const char* shared = environment_variable(kSharedGpuVariable);
  DeviceInfo info =
      device_of_rank(backend, options.text("device"), static_cast<int>(options.integer("threads")),
                     options.text("isa"), {local, sharing, shared && std::string_view(shared) == "1"});
  info.kernels = chosen_kernels(options).table;
  return {&find_backend(backend), std::move(info)};
}

KernelsFile chosen_kernels(const Options& options) {
  return chosen_kernels(options, options.text("device"));
}

KernelsFile chosen_kernels(const Options& options, const std::string& device) {
  return kernels_for(device, options.text("kernels"), config_home());
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

EngineOptions InferenceRank::on_rank(EngineOptions options) const {
  options.rank = context;
  options.distribution = distribution;
  options.batch = std::max<int64_t>(options.batch, distribution.mesh.size(Axis::kData));
  if (threads > 0) options.threads = threads;
  return options;
}

InferenceRanks::InferenceRanks(const Options& options, Console& console, RankSession* session)
    : options_(options),
      console_(console),
      silent_(silenced(console.settings(), nowhere_.fd)),
      session_(session) {
  MeshConfig mesh = inference_mesh(options);
  share_gpu_queues(wanted_ranks(options, mesh));
  world_ = open_world({wanted_ranks(options, mesh), environment_variable});
  if (session_) session_->open(world_);
  leads_ = world_.ranks[0]->rank() == 0;
  mesh_ = resolved(mesh, world_.size);
  if (world_.size == 1) return;
  if (options.declared("check") && options.given("check"))
    throw Error(ErrorKind::kUsage, "--check ref compares the nodes of one rank; there are more",
                "without --ranks and --mesh");
  this->console().detail(
      strf("%d ranks (%s): %s", world_.size, world_.transport, to_string(mesh_of(mesh_, 0)).c_str()));
}

InferenceRanks::Nowhere::Nowhere() : fd(::open("/dev/null", O_WRONLY | O_CLOEXEC)) {}
InferenceRanks::Nowhere::~Nowhere() {
  ::close(fd);
}

std::vector<std::string> InferenceRanks::from_leader(const std::function<std::vector<std::string>()>& find) {
  if (!has_processes()) return find();
  std::string joined;
  if (leads_)
    for (const std::string& text : find()) joined += text + '\0';
  joined = from_first(*world_.ranks[0], joined);
  std::vector<std::string> texts;
  for (size_t at = 0; at < joined.size(); at += texts.back().size() + 1)
    texts.emplace_back(joined.c_str() + at);
  return texts;
}

void InferenceRanks::require_same(Json facts) {
  if (!has_processes()) return;
  facts["the program"] = std::string("Vitrail ") + VITRAIL_VERSION;
  facts["--mesh"] = to_string(mesh_of(mesh_, 0)) + (mesh_.tokens_on_tp ? " tokens_on_tp" : "");
  for (const char* name : {"batch", "dtype", "backend"})
    facts[std::string("--") + name] = options_.text(name);
  require_same_facts(*world_.ranks[0], facts);
}

void InferenceRanks::run(const EngineOptions& engine, const std::function<void(InferenceRank&)>& body) {
  if (!session_) return run_rank(nullptr, body);
  const int first = world_.local_rank, sharing = world_.local_size;
  run_ranks(
      {.worlds = std::move(world_.ranks),
       .mesh = mesh_,
       .device = [&](int i) { return used_as(chosen_device(options_, first + i, sharing).info, engine); },
       .sharing = sharing,
       .heartbeat = session_->heartbeat(),
       .variables = environment_variable,
       .note = [&](const std::string& text) { console().detail(text); }},
      [&](RankContext& context) {
        const PhaseScope computing(context.pulse, RankPhase::kEvaluation);
        run_rank(&context, body);
      });
  if (!stopped_) return;
  if (!leads_) throw EndProcess{exit_code(ErrorKind::kStopped)};
  throw Error(*stopped_);
}

void InferenceRanks::run_rank(RankContext* context, const std::function<void(InferenceRank&)>& body) {
  const bool many = context && context->ranks;
  const bool speaks = !many || context->ranks->mesh().rank == 0;
  Console nobody(silent_.settings());  // consoles are for one thread
  InferenceRank rank{.console = speaks ? console() : nobody, .context = context};
  if (many) {
    rank.distribution = {.mesh = context->ranks->mesh(), .tokens_on_tp = mesh_.tokens_on_tp};
    rank.threads = static_cast<int>(options_.integer("threads"));
    if (rank.threads == 0)
      rank.threads = std::max(1, processor_threads(0, options_.text("isa")) / world_.local_size);
  }
  try {
    body(rank);
  } catch (const Error& error) {
    if (!many || error.kind() != ErrorKind::kStopped) throw;
    const std::lock_guard lock(mutex_);
    stopped_ = error;
  }
}

void on_ranks(const Options& options, Console& console, const std::function<void(InferenceRanks&)>& body) {
  if (!RankSession::needed(wanted_ranks(options, inference_mesh(options)))) {
    InferenceRanks alone(options, console, nullptr);
    return body(alone);
  }
  RankSession session(rank_settings(options));
  session.run([&] {
    InferenceRanks ranks(options, console, &session);
    body(ranks);
  });
}

}  // namespace vitrail::cli
