#include <nlohmann/json.hpp>
#include <optional>

#include "api/precision.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "base/values.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "io/find_model.h"
#include "measure/calibrate.h"
#include "measure/device_check.h"
#include "measure/host.h"
#include "measure/host_load.h"

namespace vitrail::cli {

namespace {

Calibration read_calibration(const Options& options) {
  const auto threads = static_cast<int>(options.integer("threads"));
  Calibration calibration{.device = device_here(options.text("device"), threads, options.text("isa")),
                          .gemms = wanted_gemms(options, calibration_gemms()),
                          .rounds = options.integer("rounds"),
                          .budget = options.number("budget")};
  calibration.dtypes = options.list("type");
  for (const std::string& text : options.list("at-threads"))
    calibration.threads.push_back(static_cast<int>(parse_integer(text).value_or(1)));
  if (options.given("gemm")) calibration.budget = 0;
  return calibration;
}

void run_check(const Options& options, Console& console) {
  const Calibration wanted = read_calibration(options);
  Progress progress(console, "check", "steps", 0);
  const auto steps =
      check_device_file(options.text("check"), shipped_places("devices", "configs/devices"), wanted.device,
                        wanted.dtypes, wanted.budget, [&](int64_t count) { progress.advance(count); });
  progress.finish();
  console.print_json(to_json(steps));
  console.print(to_text(steps));
}

void run_calibrate(const Options& options, Console& console) {
  if (options.given("check")) return run_check(options, console);
  std::optional<AtomicFile> out;  // opened first, so that a path that cannot be written fails at once
  if (options.given("out")) out.emplace(options.text("out"));
  const HostLoad others;
  Calibration calibration = read_calibration(options);
  DeviceFile file = [&] {
    Progress progress(console, "calibrate", "measurements", calibration.measurements());
    calibration.advance = [&](int64_t count) { progress.advance(count); };
    return measure_device(calibration);
  }();
  const std::string warning =
      calibration.device.shares_host_memory ? busy_warning(others.cores(), read_machine().cores) : "";
  if (options.given("name")) file.name = options.text("name");
  console.print_json(to_json(file));
  console.print(to_text(file));
  if (!warning.empty()) console.say(warning);
  if (!out) return;
  out->write(file_text(file));
  out->commit();
  console.say("written to " + options.text("out"));
}
}  // namespace

Command bench_calibrate_command() {
  return {{.name = "bench calibrate",
           .summary = "this machine as a device file, for estimates elsewhere: plan --target FILE",
           .examples = {{"bench calibrate --out configs/devices/desk.json", "measure and keep"},
                        {"bench calibrate --device cuda --out configs/devices/gpu.json", "the GPU instead"},
                        {"bench calibrate --check desk", "how far it is off today"},
                        {"plan -m vit_base_patch16_224 --target configs/devices/desk.json",
                         "then plan for it anywhere"}},
           .options =
               std::vector<OptionSpec>{
                   {.name = "out", .help = "the file to write", .metavar = "FILE", .letter = 'o'},
                   {.name = "name",
                    .help = "what the device is called; its own name otherwise",
                    .metavar = "TEXT"},
                   {.name = "device", .help = "cpu or cuda[:i]", .metavar = "DEVICE", .fallback = "cpu"},
                   {.name = "check", .help = "how far this file or name is off here", .metavar = "FILE"},
                   {.name = "budget",
                    .help = "seconds for each program whose nodes make the curves; 0: no curves",
                    .kind = ValueKind::kNumber,
                    .metavar = "S",
                    .fallback = "0.5",
                    .least = 0,
                    .most = 600},
                   {.name = "type",
                    .help = "curves in this type only; may be repeated",
                    .metavar = "TYPE",
                    .choices = model_types(),
                    .repeated = true},
                   {.name = "at-threads",
                    .help = "with this many threads; may be repeated (otherwise one and --threads)",
                    .kind = ValueKind::kInteger,
                    .metavar = "N",
                    .least = 1,
                    .most = kMaxThreads,
                    .repeated = true}} +
               tuning_options()},
          run_calibrate};
}

}  // namespace vitrail::cli
