#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_result.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/model_choice.h"
#include "cli/timing.h"
#include "cli/train_plan.h"
#include "measure/profile.h"
#include "train/picture_data.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

// There is no warm-up of the learning rate here, so a part of it will do.
constexpr double kShareOfRate = 0.1;

// Whole updates on one made-up micro-batch that stays in memory.
class MadeUpSteps {
 public:
  MadeUpSteps(const TrainPlan& plan, RankContext& rank)
      : config_(plan.setup().config), step_(plan.step(), rank) {
    const VitConfig& model = plan.setup().model->card.config;
    const int64_t pictures = config_.train.micro_batch;
    pictures_ = rule_pictures(model, pictures);
    make_pixels(plan.setup().step);
    targets_.resize(static_cast<size_t>(pictures * model.classes));
    for (int64_t i = 0; i < pictures; ++i)
      targets_[static_cast<size_t>(i * model.classes + i % model.classes)] = 1;
    weights_.assign(static_cast<size_t>(pictures), 1 / static_cast<float>(config_.train.batch));
    step_.start(plan.setup().model->fill);
    bring_pictures(plan.setup(), step_);
  }

  void run() {
    for (int64_t micro = 0; micro < config_.train.accumulation; ++micro) run_micro(micro);
    step_.run_update(config_.optim.lr * kShareOfRate);
    ++steps_;
  }

  // Node times, where they cost a run of its own.
  void time_nodes() {
    constexpr int kRuns = 5;
    for (Executor* program : {&micro(), &update()}) program->time_nodes(true), program->reset_times();
    for (int i = 0; i < kRuns; ++i) run();
  }

  // Mean over the made-up pictures, as the weights stand.
  double loss() {
    run_micro(0);
    double sum = 0;
    for (const float loss : step_.losses()) sum += static_cast<double>(loss);
    return sum / static_cast<double>(config_.train.micro_batch);
  }
  int64_t steps() const { return steps_; }
  Executor& micro() { return step_.micro(); }
  Executor& update() { return step_.update(); }

 private:
  // The same in 8 bits, for steps that take pixels.
  void make_pixels(const StepConfig& step) {
    if (step.pictures == PictureForm::kFloats) return;
    for (int64_t i = 0; i < step.micro_batch; ++i) {
      const bool stored = step.pictures == PictureForm::kStored;
      recipes_.push_back({.source = static_cast<int32_t>(stored ? i % step.stored_pictures : i)});
    }
    for (const float value : pictures_)
      pixels_.push_back(static_cast<uint8_t>(std::clamp(128 + 60 * value, 0.0f, 255.0f)));
  }

  void run_micro(int64_t micro) {
    // A teacher, where one is asked for, answers with the labels.
    const MicroBatch batch{.pictures = pictures_,
                           .targets = targets_,
                           .weights = weights_,
                           .teacher = targets_,
                           .seed = config_.train.seed,
                           .step = steps_,
                           .position = micro * config_.train.micro_batch,
                           .pixels = pixels_,
                           .recipes = recipes_};
    // Pictures stay where they are on a device that keeps them.
    if (steps_ > 0 && step_.keeps_inputs())
      step_.run_micro_again(batch);
    else
      step_.run_micro(batch);
  }

  const TrainConfig& config_;
  TrainStep step_;
  std::vector<float> pictures_, targets_, weights_;
  std::vector<uint8_t> pixels_;
  std::vector<PictureRecipe> recipes_;
  int64_t steps_ = 0;
};

BenchResult described(const TrainPlan& plan) {
  const VitConfig& model = plan.setup().model->card.config;
  const int64_t batch = plan.setup().config.train.batch;
  return {.model = model.arch.empty() ? strf("ViT %lldx%lld", static_cast<long long>(model.width),
                                             static_cast<long long>(model.depth))
                                      : model.arch,
          .device = device_text(plan.step().micro),
          .dtype = enum_name(plan.setup().config.train.dtype),
          .training = true,
          .batch = batch,
          .peak_bytes = plan.step().peak_bytes(),
          // Backward is twice the forward; what is recomputed counts as time lost, not as work done.
          .flops = 3 * 2 * static_cast<double>(count_run_macs(model) * batch),
          .model_flops = 3 * 2 * static_cast<double>(count_macs(model) * batch)};
}

void print_profile(const Executor& program, const char* title, const Peaks& peaks, Console& console) {
  console.print("\n" + console.bold(title) + "\n" +
                profile_table(profile_rows(program.plan(), program.times(), ProfileBy::kOperation), peaks,
                              ProfileColumns::kKernels));
}

void run_bench(const Options& options, Console& console) {
  const std::optional<SavedBench> saved = SavedBench::read(options);
  const TrainPlan plan(options, chosen_device(options).info);
  for (const std::string& note : plan.notes()) console.detail(note);
  BenchResult result = described(plan);
  if (saved) saved->refuse_another(result);
  RankContext rank(plan.device());
  require_step_fits(
      plan.step(), [](int64_t) { return NamedBytes(); }, rank.available());
  result.foreign_bytes = rank.hardware->foreign_bytes();
  const bool profiling = options.flag("profile");
  const Peaks peaks = profiling ? peaks_of(plan.step().micro) : Peaks{.gflops = peak_of(plan.step().micro)};
  result.peak_gflops = peaks.gflops;
  MadeUpSteps steps(plan, rank);
  const auto reset = [&] { steps.micro().reset_times(), steps.update().reset_times(); };
  result.seconds = spread_of(time_calls(
      options, console, "bench", [&] { steps.run(); }, reset));
  const RunConfig& train = plan.setup().config.train;
  const int64_t steps_run = steps.steps();
  const double loss = steps.loss();
  const ordered_json json = {{"micro_batch", train.micro_batch},
                             {"optimizer", plan.setup().config.optim.name},
                             {"recompute", enum_name(train.recompute)},
                             {"loss", loss}};
  report_bench(result, saved, options,
               {{"training", strf("%s, %s, recompute %s, micro-batches of %lld",
                                  plan.setup().config.optim.name.c_str(), enum_name(train.dtype),
                                  enum_name(train.recompute), static_cast<long long>(train.micro_batch))},
                {"loss", strf("%.4f after %lld steps", loss, static_cast<long long>(steps_run))}},
               json, console);
  if (!profiling) return;
  if (plan.device().records_graphs) steps.time_nodes();
  print_profile(steps.micro(), "A micro-batch: forward and backward", peaks, console);
  print_profile(steps.update(), "The update", peaks, console);
}

// --batch, --backend, --isa of an engine's options; the others are of inference alone.
std::vector<OptionSpec> step_options() {
  std::vector<OptionSpec> options;
  for (OptionSpec& spec : engine_options(1)) {
    if (spec.name == "batch") {
      spec.help = "pictures computed at once (train.micro_batch)";
      spec.fallback.clear();
      spec.usual = "the config's, else 64";
    }
    if (spec.name == "batch" || spec.name == "backend" || spec.name == "isa") options.push_back(spec);
  }
  for (OptionSpec& spec : train_plan_options())
    if (spec.name != "train") options.push_back(spec);
  return options;
}
}  // namespace

Command bench_train_command() {
  const std::vector<OptionSpec> own = {
      {.name = "steps",
       .help = "time this many steps instead of --seconds; 0: by time",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .fallback = "0",
       .least = 0,
       .most = 1e6},
      {.name = "profile", .help = "also where the time goes, by operation", .kind = ValueKind::kFlag},
      {.name = "dtype",
       .help = "train.dtype: f32, or bf16 or f16 with f32 master weights; on a GPU also fp8 and tf32",
       .metavar = "TYPE",
       .fallback = "f32",
       .choices = {"f32", "bf16", "f16", "fp8", "tf32"}}};
  CommandSpec spec{
      .name = "bench train",
      .summary = "speed of training: whole steps (forward, backward, update) without a loader",
      .examples = {{"bench train -m vit_small_patch16_224 --batch 8 --classes 10", "made-up pictures"},
                   {"bench train --config configs/demo-fashion.json",
                    "a recipe's model, batch and optimizer"},
                   {"bench train -m vit_tiny_patch16_224 --batch 16 --profile", "where the time goes"},
                   {"bench train -m vit_base_patch16_224 --batch 256 --device cuda --dtype bf16", "on a GPU"},
                   {"bench train --json > before.json", "keep a result; --compare before.json later"}},
      .options = architecture_options() + timing_options() + own + comparison_options() + step_options()};
  add_train_settings(spec);
  return {spec, run_bench};
}

}  // namespace vitrail::cli
