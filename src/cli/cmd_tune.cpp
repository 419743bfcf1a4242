#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "cli/train_plan.h"
#include "measure/tuner_gpu.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string place_to_write(const Options& options, const TunedDevice& device) {
  std::string path = options.given("out") ? options.text("out") : own_kernels_path(config_home(), device);
  if (path.empty())
    throw Error(ErrorKind::kUsage, "there is no place for the table: neither XDG_CONFIG_HOME nor HOME is set",
                "--out FILE names one");
  return path;
}

// A table in the default place begins as the one that is in use.
std::string usual_home(const Options& options) {
  return options.given("out") ? "" : config_home();
}

void refuse_given(const Options& options, const std::vector<std::string>& names, const char* where) {
  for (const std::string& name : names)
    if (options.origin(name) > Origin::kEnvironment)
      throw Error(ErrorKind::kUsage, strf("bench tune takes --%s %s", name.c_str(), where),
                  "a processor is tuned by sizes of GEMMs, a GPU by the GEMMs of a model");
}

void tune_sizes(const Options& options, Console& console) {
  refuse_given(options, {"model", "batch", "dtype", "train"}, "with --device cuda only");
  const std::string path = place_to_write(options, this_processor());
  const std::vector<GemmSize> sizes = wanted_gemms(options, zoo_gemms());
  const DeviceInfo device = processor_here(static_cast<int>(options.integer("threads")), options.text("isa"));
  ThreadPool pool(device.threads);
  KernelTable table = kernels_to_extend(path, usual_home(options), this_processor());
  Table shown({{"GEMM m x n x k"}, {"fastest, GFLOP/s"}, {"then"}, {""}, {""}});
  ordered_json rows = ordered_json::array();
  Progress progress(console, "tune", "GEMMs", static_cast<int64_t>(sizes.size()));
  for (const GemmSize& size : sizes) {
    const std::vector<KernelSpeed> speeds = measure_kernels(size, device, pool, options.integer("rounds"));
    table.set(tuned_row(size, device, speeds));
    shown.row(row_cells(size, speeds));
    rows.push_back(row_json(size, speeds));
    progress.advance(1, size_text(size) + " " + speeds.front().kernel);
  }
  progress.finish();
  write_kernels(path, table);
  const std::string isa = isa_name(device.isa);
  console.print_json({{"file", path}, {"isa", isa}, {"threads", device.threads}, {"rows", rows}});
  console.print(shown.text());
  console.say(strf("written to %s, for %s with %s", path.c_str(), isa.c_str(),
                   format_count(device.threads, "thread").c_str()));
}

std::vector<PlannedGemm> planned_gemms(const Options& options, const DeviceInfo& device, Console& console) {
  if (asks_for_training(options)) {
    const RunPlan plan = planned_run(options, device);
    return gemms_to_tune(plan.step().programs());
  }
  const EngineOptions engine{.backend = device.backend,
                             .ordinal = device.ordinal,
                             .batch = options.integer("batch"),
                             .compute = *parse_dtype(options.text("dtype"))};
  const ExecutionPlan plan = plan_inference(choose_model(options, console).config, engine, device);
  return gemms_to_tune({&plan});
}

void tune_program(const Options& options, Console& console) {
  refuse_given(options, {"gemm", "isa"}, "on the CPU only");
  const DeviceInfo info = device_here(options.text("device"), 0, "");
  const TunedDevice gpu = tuned_device(info);
  const std::string path = place_to_write(options, gpu);
  const std::vector<PlannedGemm> gemms = planned_gemms(options, info, console);
  const std::unique_ptr<Device> device = open_device(info);
  Progress progress(console, "tune", "GEMMs", static_cast<int64_t>(gemms.size()));
  const TunedGemms tuned = tune_gemms(gemms, info, *device, options.integer("rounds"),
                                      kernels_to_extend(path, usual_home(options), gpu),
                                      [&](const std::string& gemm) { progress.advance(1, gemm); });
  progress.finish();
  write_kernels(path, tuned.table, gpu);
  const std::string cublas = gpu.libraries(tuned.table).at("cublaslt");
  console.print_json({{"file", path}, {"card", gpu.name}, {"cublaslt", cublas}, {"rows", tuned.rows}});
  console.print(tuned.text);
  console.say(strf("written to %s, for %s with cuBLASLt %s", path.c_str(), gpu.name.c_str(), cublas.c_str()));
}

void run_tune(const Options& options, Console& console) {
  if (named_device(options.text("device"), "--device").tunes_sizes)
    tune_sizes(options, console);
  else
    tune_program(options, console);
}

// The options that name the program whose GEMMs are tuned on a GPU.
std::vector<OptionSpec> program_options() {
  std::vector<OptionSpec> options = architecture_options() + train_plan_options();
  for (const OptionSpec& spec : engine_options(1))
    if (spec.name == "batch") options.push_back(spec);
  options.push_back({.name = "dtype",
                     .help = "what the model computes in, on a GPU",
                     .metavar = "TYPE",
                     .fallback = "f32",
                     .choices = {"f32", "bf16", "f16"}});
  return options;
}
}  // namespace

Command bench_tune_command() {
  CommandSpec spec{
      .name = "bench tune",
      .summary = "which kernel is fastest for each GEMM here; kept and used from then on",
      .examples = {{"bench tune", "all GEMMs of ViT-Ti, S, B and L; a few minutes"},
                   {"bench tune --threads 1", "the same for one thread; other rows stay"},
                   {"bench tune --gemm 788x2304x768", "one GEMM: rows x outputs x inputs"},
                   {"bench tune --device cuda --train -m vit_base_patch16_224 --batch 256 --dtype bf16",
                    "the GPU's kernels for the GEMMs of a training step; without --train of an inference"},
                   {"bench infer --kernels none", "without what was tuned"}},
      .options = std::vector<OptionSpec>{{.name = "out",
                                          .help = "the table's file; the one that every command looks for "
                                                  "otherwise",
                                          .metavar = "FILE",
                                          .letter = 'o'},
                                         {.name = "device",
                                          .help = "whose kernels: cpu or cuda[:i]",
                                          .metavar = "DEVICE",
                                          .fallback = "cpu"}} +
                 tuning_options() + program_options()};
  add_train_settings(spec);
  return {spec, run_tune};
}

}  // namespace vitrail::cli
