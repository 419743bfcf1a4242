#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "launch/rank_session.h"
#include "measure/dist_bench.h"

namespace vitrail::cli {

namespace {

int wanted_ranks(const Options& options, const Communicator* world) {
  const int ranks = static_cast<int>(options.integer("ranks"));
  if (!world) return ranks;
  // Under MPI a process is one rank, and may say so.
  if (options.origin("ranks") != Origin::kDefault && ranks > 1 && ranks != world->size())
    throw Error(ErrorKind::kUsage, strf("--ranks %d, and MPI started %d", ranks, world->size()),
                strf("without --ranks, or mpirun -n %d", ranks));
  return world->size();
}

// `world` is the group of all ranks where MPI started this process, else none; `summed` is called after each
// sum.
void measure(const Options& options, std::unique_ptr<Communicator> world, const std::function<void()>& summed,
             Console& console) {
  const int ranks = wanted_ranks(options, world.get());
  const DType dtype = parse_dtype(options.text("dtype")).value();
  const auto count = static_cast<size_t>(options.number("mb") * 1e6 / static_cast<double>(size_of(dtype)));
  if (world && world->rank() != 0) return follow(*world, dtype, count, summed);
  DistBench bench(dtype, count);
  bench.add(std::make_unique<SummingRanks>(ranks, dtype, count));
  if (world) bench.add(std::make_unique<SummingRanks>(std::move(world), dtype, count));
  {
    BenchProgress progress(console, "bench dist", 0);
    const auto round = [&] {
      bench.round();
      if (summed) summed();
    };
    time_calls(read_timing(options), round, progress.hooks([&] { bench.forget(); }));
  }
  console.print(bench.to_text());
  console.print_json(bench.to_json());
}

// The ranks of this process live and, in turn, measure.
void post(RankSession& session, int first, int count) {
  if (session.signals().wanted()) throw Error(ErrorKind::kStopped, "stopped during a benchmark");
  for (int r = first; session.heartbeat() && r < first + count; ++r)
    session.heartbeat()->pulse(r).at_node("all-reduce");
}

void run_bench_dist(const Options& options, Console& console) {
  if (!RankSession::needed(1)) return measure(options, nullptr, {}, console);
  RankSession session(rank_settings(options));
  session.run([&] {
    std::unique_ptr<Communicator> world;
    int first = 0, count = static_cast<int>(options.integer("ranks"));
    if (started_as_rank()) {
      World opened = open_world({1, environment_variable});
      session.open(opened);
      world = std::move(opened.ranks[0]);
      first = world->rank();
      count = 1;
    }
    measure(
        options, std::move(world), [&] { post(session, first, count); }, console);
  });
}
}  // namespace

Command bench_dist_command() {
  const std::vector<OptionSpec> own = {{.name = "mb",
                                        .help = "megabytes that every rank adds; 22: the gradients of ViT-Ti",
                                        .kind = ValueKind::kNumber,
                                        .metavar = "MB",
                                        .fallback = "22",
                                        .least = 0.001,
                                        .most = 4096},
                                       {.name = "ranks",
                                        .help = "how many ranks; under mpirun as many as it started",
                                        .kind = ValueKind::kInteger,
                                        .metavar = "N",
                                        .fallback = "2",
                                        .least = 1,
                                        .most = 256},
                                       {.name = "dtype",
                                        .help = "element type; f16 and bf16 are summed in f32",
                                        .metavar = "TYPE",
                                        .fallback = "f32",
                                        .choices = {"f64", "f32", "f16", "bf16"}}};
  return {
      {.name = "bench dist",
       .summary = "speed of an all-reduce among ranks: threads, and MPI under mpirun, against a plain copy",
       .examples = {{"bench dist", "22 MB over two rank threads"},
                    {"bench dist --ranks 4 --mb 344 --json", R"({"copy": {...}, "threads": {"copies"...}})"}},
       .options = own + std::vector{deadline_option()} + timing_options()},
      run_bench_dist};
}

}  // namespace vitrail::cli
