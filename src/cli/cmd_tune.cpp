#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/kernels_file.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "cli/tune.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string size_text(const ProductSize& s) {
  return strf("%lldx%lldx%lld", static_cast<long long>(s.m), static_cast<long long>(s.n),
              static_cast<long long>(s.k));
}

std::string place_to_write(const Options& options) {
  const std::string path = options.given("out") ? options.text("out") : default_kernels_path();
  if (path.empty())
    throw Error(ErrorKind::kUsage, "there is no place for the table: neither XDG_CONFIG_HOME nor HOME is set",
                "--out FILE names one");
  return path;
}

ordered_json row_json(const ProductSize& size, const std::vector<KernelSpeed>& speeds) {
  ordered_json row = {{"m", size.m}, {"n", size.n}, {"k", size.k}, {"gflops", ordered_json::object()}};
  for (const KernelSpeed& speed : speeds) row["gflops"][speed.kernel] = speed.gflops;
  return row;
}

std::vector<std::string> row_cells(const ProductSize& size, const std::vector<KernelSpeed>& speeds) {
  std::vector<std::string> cells = {size_text(size)};
  for (const KernelSpeed& speed : speeds)
    cells.push_back(strf("%s %.1f", speed.kernel.c_str(), speed.gflops));
  return cells;
}

void run_tune(const Options& options, Console& console) {
  const std::string path = place_to_write(options);
  const std::vector<ProductSize> sizes = wanted_products(options, zoo_products());
  const DeviceInfo device = cpu_device(static_cast<int>(options.integer("threads")), options.text("isa"));
  ThreadPool pool(device.threads);
  // Rows of other thread counts and instruction sets stay, as long as they hold for this machine.
  KernelTable table;
  if (const KernelsFile before = read_kernels(path); before.table) table = *before.table;
  Table shown({{"product m x n x k"}, {"fastest, GFLOP/s"}, {"then"}, {""}, {""}});
  ordered_json rows = ordered_json::array();
  Progress progress(console, "tune", "products", static_cast<int64_t>(sizes.size()));
  for (const ProductSize& size : sizes) {
    const std::vector<KernelSpeed> speeds = measure_kernels(size, device, pool, options.integer("rounds"));
    table.set(tuned_row(size, device, speeds));
    shown.row(row_cells(size, speeds));
    rows.push_back(row_json(size, speeds));
    progress.advance(1, size_text(size) + " " + speeds.front().kernel);
  }
  progress.finish();
  write_kernels(path, table);
  const char* isa = to_string(static_cast<IsaLevel>(device.isa));
  console.print_json({{"file", path}, {"isa", isa}, {"threads", device.threads}, {"rows", rows}});
  console.print(shown.text());
  console.say(strf("written to %s, for %s with %s", path.c_str(), isa,
                   format_count(device.threads, "thread").c_str()));
}
}  // namespace

Command bench_tune_command() {
  return {{.name = "bench tune",
           .summary = "which kernel is fastest for each product here; kept and used from then on",
           .examples = {{"bench tune", "all products of ViT-Ti, S, B and L; a few minutes"},
                        {"bench tune --threads 1", "the same for one thread; other rows stay"},
                        {"bench tune --product 788x2304x768", "one product: rows x outputs x inputs"},
                        {"bench infer --kernels none", "without what was tuned"}},
           .options =
               std::vector<OptionSpec>{
                   {.name = "out",
                    .help = "the table's file; the one that every command looks for otherwise",
                    .metavar = "FILE",
                    .letter = 'o'}} +
               tuning_options()},
          run_tune};
}

}  // namespace vitrail::cli
