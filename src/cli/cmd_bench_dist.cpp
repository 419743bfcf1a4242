#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "dist/mpi_world.h"
#include "measure/dist_bench.h"

namespace vitrail::cli {

namespace {

const char* variable(const char* name) {
  return std::getenv(name);
}

// The group of all ranks where MPI started this process, else none.
std::unique_ptr<Communicator> world_of_process() {
  if (started_by_srun_without_pmix(variable))
    throw Error(ErrorKind::kUsage, "srun started several tasks without PMIx: they cannot become ranks",
                "srun --mpi=pmix");
  return started_by_mpirun(variable) || started_by_srun(variable) ? mpi_world() : nullptr;
}

int wanted_ranks(const Options& options, const Communicator* world) {
  const int ranks = static_cast<int>(options.integer("ranks"));
  if (!world) return ranks;
  if (options.origin("ranks") != Origin::kDefault && ranks != world->size())
    throw Error(ErrorKind::kUsage, strf("--ranks %d, and MPI started %d", ranks, world->size()),
                strf("without --ranks, or mpirun -n %d", ranks));
  return world->size();
}

void run_bench(const Options& options, Console& console) {
  std::unique_ptr<Communicator> world = world_of_process();
  const int ranks = wanted_ranks(options, world.get());
  const DType dtype = parse_dtype(options.text("dtype")).value();
  const auto count = static_cast<size_t>(options.number("mb") * 1e6 / static_cast<double>(size_of(dtype)));
  if (world && world->rank() != 0) return follow(*world, dtype, count);
  DistBench bench(dtype, count);
  bench.add(std::make_unique<SummingRanks>(ranks, dtype, count));
  if (world) bench.add(std::make_unique<SummingRanks>(std::move(world), dtype, count));
  {
    BenchProgress progress(console, "bench dist", 0);
    time_calls(
        read_timing(options), [&] { bench.round(); }, progress.hooks([&] { bench.forget(); }));
  }
  console.print(bench.to_text());
  console.print_json(bench.to_json());
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
       .options = own + timing_options()},
      run_bench};
}

}  // namespace vitrail::cli
