#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "measure/calibrate.h"
#include "measure/host.h"
#include "measure/host_load.h"

namespace vitrail::cli {

namespace {

DeviceFile calibrate_processor(const Options& options, Console& console) {
  Calibration calibration{
      .device = device_here("cpu", static_cast<int>(options.integer("threads")), options.text("isa")),
      .gemms = wanted_gemms(options, calibration_gemms()),
      .rounds = options.integer("rounds")};
  Progress progress(console, "calibrate", "measurements", calibration.measurements());
  calibration.advance = [&](int64_t count) { progress.advance(count); };
  return measure_processor(calibration);
}

void run_calibrate(const Options& options, Console& console) {
  const std::optional<int> gpu = parse_cuda(options.text("device"));
  std::optional<AtomicFile> out;  // opened first, so that a path that cannot be written fails at once
  if (options.given("out")) out.emplace(options.text("out"));
  const HostLoad others;
  DeviceFile file = gpu ? measure_gpu(*gpu) : calibrate_processor(options, console);
  const std::string warning = gpu ? "" : busy_warning(others.cores(), read_machine().cores);
  if (options.given("name")) file.name = options.text("name");
  console.print_json(to_json(file));
  console.print(to_text(file));
  if (!warning.empty()) console.say(warning);
  if (!out) return;
  out->write(to_json(file).dump(2) + "\n");
  out->commit();
  console.say("written to " + options.text("out"));
}
}  // namespace

Command bench_calibrate_command() {
  return {{.name = "bench calibrate",
           .summary = "this machine as a device file, for estimates elsewhere: plan --target FILE",
           .examples = {{"bench calibrate --out configs/devices/desk.json", "measure and keep"},
                        {"bench calibrate --device cuda --out configs/devices/card.json", "the GPU instead"},
                        {"plan -m vit_base_patch16_224 --target configs/devices/desk.json",
                         "then plan for it anywhere"}},
           .options =
               std::vector<OptionSpec>{
                   {.name = "out", .help = "the file to write", .metavar = "FILE", .letter = 'o'},
                   {.name = "name",
                    .help = "what the device is called; its own name otherwise",
                    .metavar = "TEXT"},
                   {.name = "device", .help = "cpu or cuda[:i]", .metavar = "DEVICE", .fallback = "cpu"}} +
               tuning_options()},
          run_calibrate};
}

}  // namespace vitrail::cli
