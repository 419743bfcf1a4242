#include "train/step_plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/rng.h"
#include "ops/elementwise.h"
#include "ops/make_images.h"
#include "ops/persistent.h"
#include "plan/devices.h"
#include "train/model_setup.h"

namespace vitrail {

namespace {

VitRecordOptions record_options(const StepConfig& config) {
  VitRecordOptions options;
  options.batch = config.micro_batch;
  options.dtype = config.master;
  options.dropout = config.dropout;
  options.drop_path = config.drop_path;
  options.lora = config.lora;
  return options;
}

// Returns the value of images that the step makes from pixels; -1 where it does not.
ValueId record_images(Builder& b, const StepConfig& config) {
  if (config.images == ImageForm::kFloats) return -1;
  const VitConfig& m = config.model;
  const bool stored = config.images == ImageForm::kStored;
  const Dim channels('C', m.channels);
  const TensorDesc pixels{DType::kU8,
                          {{'R', stored ? config.stored_images : config.micro_batch},
                           {'Y', m.image_height},
                           {'X', m.image_width},
                           channels}};
  return b.add<MakeImagesOp>(
      {stored ? b.state(kStoredPixels, pixels, Category::kStaging) : b.input("pixels", pixels),
       b.input("recipes", {DType::kI32, {{'B', config.micro_batch}, {'Z', kRecipeWords}}}),
       b.state(kImageLevels, {DType::kF32, {channels, {'Z', 256}}}, Category::kStaging)},
      "images", config.master);
}

// Records one loss an image, from the labels and, when distilling, from the teacher.
ValueId record_loss(Builder& b, const StepConfig& config, const VitValues& vit) {
  const TensorDesc& logits = b.desc(vit.logits);
  const ValueId targets = b.input("targets", logits);
  const bool alone = config.distill.kind == DistillKind::kNone;
  // Without a teacher, the loss of a distilled model is that of its output: the average of its two heads.
  const ValueId answer =
      alone && vit.distilled >= 0 ? b.add<AverageOp>({vit.logits, vit.distilled}, "logits") : vit.logits;
  const Builder::Scope step(b, ModelStep::kLoss);
  const ValueId own = b.add<CrossEntropyOp>({answer, targets}, "loss", config.loss);
  if (alone) return own;
  const ValueId teacher = b.input("teacher", logits);
  const double alpha = config.distill.alpha, tau = config.distill.temperature;
  const bool soft = config.distill.kind == DistillKind::kSoft;
  ValueId student = vit.distilled >= 0 ? vit.distilled : vit.logits;
  if (soft) student = b.add<MultiplyOp>({student}, "student", 1 / tau);
  const ValueId theirs =
      b.add<CrossEntropyOp>({student, teacher}, "distill", soft ? LossKind::kDivergence : LossKind::kSoftmax);
  return b.add<AddOp>({b.add<MultiplyOp>({own}, "loss.share", 1 - alpha),
                       b.add<MultiplyOp>({theirs}, "distill.share", soft ? alpha * tau * tau : alpha)},
                      "loss.sum");
}

std::unordered_set<std::string_view> names_of(const std::vector<TrainedParam>& params) {
  std::unordered_set<std::string_view> names;
  for (const TrainedParam& param : params) names.insert(param.name);
  return names;
}

Program record_update_program(const StepConfig& config, const std::vector<LowCopy>& copies) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  record_update(b, config.trained, config.optim, config.loss_scale);
  std::unordered_map<std::string_view, const TensorDesc*> trained;
  for (const TrainedParam& param : config.trained) trained.emplace(param.name, &param.desc);
  for (const auto& [master, copy, dtype] : copies) {
    const auto found = trained.find(master);
    if (found == trained.end()) continue;
    const TensorDesc& desc = *found->second;
    const ValueId target = b.state(copy, {dtype, desc.shape}, Category::kParameters, master);
    b.add_all<CopyIntoOp>({target, b.parameter(master, desc)}, copy);
  }
  return b.finish();
}

// Fills every low-precision copy, of frozen parameters too, or those that are trained from their averages.
Program record_refresh(const StepConfig& config, const std::vector<LowCopy>& copies, bool average = false) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const std::unordered_set<std::string_view> trained = names_of(config.trained);
  std::unordered_map<std::string, Shape> shapes;
  for (ParamSpec& spec : step_params(config.model, config.lora))
    shapes.emplace(spec.name, std::move(spec.shape));
  for (const auto& [master, copy, dtype] : copies) {
    if (average && !trained.contains(master)) continue;
    const TensorDesc desc{config.master, shapes.at(master)};
    const ValueId target = b.state(copy, {dtype, desc.shape}, Category::kParameters, master);
    const ValueId source =
        average ? b.state(ema_name(master), desc, Category::kOptimizer, master) : b.parameter(master, desc);
    b.add_all<CopyIntoOp>({target, source}, copy);
  }
  return b.finish();
}

Rewrites rewrites_of(const StepConfig& config, const RewriteTraits& traits, const KernelRule& has_kernel) {
  return {.arithmetic = config.arithmetic,
          .precision = config.precision,
          .distribution = config.distribution,
          .stages = config.stages,
          .bucket_bytes = config.bucket_bytes,
          .zero = config.zero,
          .whole_sums = config.whole_sums,
          .averages = config.optim.ema_decay > 0,
          .offload = config.offload != Offload::kNone,
          .parameters_on_host = config.offload == Offload::kParameters,
          .recompute = config.recompute,
          .traits = traits,
          .has_kernel = has_kernel};
}

Program record_eval(const StepConfig& config, bool average, Rewrites rewrites, const ZeroPlan& zero) {
  rewrites.distribution.batch_unit = 1;  // nothing is mixed
  VitRecordOptions options = record_options(config);
  options.batch = config.eval_batch;
  options.dropout = options.drop_path = 0;
  Program program = record_vit(config.model, options);
  // Averages have no low-precision copies: the pass casts them where a GEMM reads one.
  if (average) {
    const std::unordered_set<std::string_view> trained = names_of(config.trained);
    for (Value& value : program.values)
      if (value.kind == ValueKind::kParameter && trained.contains(value.name))
        value = {.name = ema_name(value.name),
                 .desc = value.desc,
                 .kind = ValueKind::kState,
                 .category = Category::kOptimizer,
                 .owner = value.name};
  }
  return inference_program(std::move(program), rewrites, {}, zero);
}

// Leaves out the parameters that other stages train.
void keep_own(std::vector<TrainedParam>& trained, const Program& stage, const Mesh& mesh) {
  std::unordered_set<std::string_view> sums;
  for (const Value& value : stage.values) sums.insert(value.name);
  std::erase_if(trained,
                [&](const TrainedParam& param) { return !sums.contains(gradient_name(param.name)); });
  VT_REQUIRE(
      !trained.empty(), ErrorKind::kConfig,
      "stage %d of mesh.pp %d holds no parameter that is trained: a pipeline trains some in every stage",
      mesh.coordinate(Axis::kPipeline), mesh.size(Axis::kPipeline));
}

// Returns whether a value is images: among inputs they alone have rows and columns of pixels.
bool is_images(const Value& value) {
  return value.desc.shape.has('Y') && value.desc.shape.has('X');
}

// Returns the bytes of a micro-batch's images, where inputs are staged outside the arena.
size_t image_bytes(const ExecutionPlan& micro) {
  size_t bytes = 0;
  for (size_t id = 0; id < micro.program.values.size(); ++id) {
    const Value& value = micro.program.values[id];
    if (micro.memory.values[id].staged && is_images(value)) bytes += value.desc.bytes();
  }
  return bytes;
}

// Returns where a group of values, or a rank's piece of it, lies.
Home home_of(const Value& container, bool offload, bool parameters_on_host) {
  if (offload && container.category == Category::kOptimizer) return Home::kHost;
  const bool read_from_host = parameters_on_host && container.category == Category::kParameters;
  return read_from_host ? Home::kLocked : Home::kDevice;
}

// Keeps the control of an update on the device, and plans the rest for the host's kernels: the device's own
// where its memory is the host's.
void plan_host_update(StepPlan& plan, const StepConfig& own, const MicroProgram& micro,
                      const Rewrites& rewrites, const std::function<ExecutionPlan(Program)>& planned,
                      const Backend& backend, const DeviceInfo& device) {
  const auto parts = [&](const Program& recorded) {
    return update_parts(recorded, rewrites, micro.buckets, micro.zero);
  };
  UpdateParts update = parts(record_update_program(own, micro.copies));
  plan.update = planned(std::move(update.control));
  HostPrograms programs{std::move(update.host), parts(record_refresh(plan.config, micro.copies)).host, {}};
  if (plan.averages()) programs.average = parts(record_refresh(plan.config, micro.copies, true)).host;
  const bool shared = device.shares_host_memory;
  plan.offload =
      plan_offload(programs, plan.config.bucket_bytes, plan.layout, shared ? backend : host_entry().kernels(),
                   shared ? device : processor_here(plan.config.host_threads));
  if (!update.gather.nodes.empty()) plan.offload->gather = planned(std::move(update.gather));
}

}  // namespace

MicroProgram record_micro(const StepConfig& config, const RewriteTraits& traits, const AfterPass& after,
                          const KernelRule& has_kernel) {
  Builder b;
  VitRecordOptions options = record_options(config);
  options.images = record_images(b, config);
  const VitValues vit = record_vit_for_training(b, config.model, options);
  const ValueId loss = record_loss(b, config, vit);
  b.output("loss", loss);
  b.output("logits", vit.logits);
  ValueId seed = b.input("weights", b.desc(loss));
  const Builder::Scope step(b, ModelStep::kLoss);
  const TensorDesc sums{DType::kF64, b.desc(loss).shape};
  b.add_all<LossSumOp>({b.state(kLossSums, sums, Category::kGradients), loss, seed}, "loss_sum");
  if (config.loss_scale.dynamic || config.loss_scale.initial != 1)
    seed = b.add<ScaleByOp>({seed, b.state(kLossScaleState, loss_scale_desc(), Category::kOptimizer)},
                            "loss_scale");
  const auto trained = [names = names_of(config.trained)](const std::string& name) {
    return names.contains(name);
  };
  return micro_program(b.finish(), {.loss = "loss", .seed = seed, .trained = trained},
                       rewrites_of(config, traits, has_kernel), after);
}

namespace {
// Records the micro-batch; `recorded` becomes the hash of its program before it is cut among ranks.
MicroProgram record_named(const StepConfig& config, const Rewrites& rewrites, uint64_t& recorded) {
  const auto after = [&](std::string_view pass, const Program& program) {
    if (pass == kPrecisionPass && config.distribution.active()) recorded = name_key(to_string(program));
  };
  return record_micro(config, rewrites.traits, after, rewrites.has_kernel);
}
}  // namespace

StepPlan plan_step(const StepConfig& config, const Backend& backend, const DeviceInfo& device) {
  require_arithmetic(backend, device, config.arithmetic);
  StepPlan plan;
  plan.config = config;
  plan.layout = std::make_shared<PersistentLayout>();
  const PlanOptions options{.pack = false, .layout = plan.layout};
  const auto planned = [&](Program program) {
    return plan_execution(std::move(program), backend, device, options);
  };
  Rewrites rewrites = rewrites_of(config, backend.traits(), kernel_rule(backend, device));
  plan.pipelined = config.distribution.mesh.size(Axis::kPipeline) > 1;
  MicroProgram micro = record_named(config, rewrites, plan.recorded);
  rewrites.stages.begins = plan.config.stages.begins = micro.begins;
  StepConfig own = config;
  if (plan.pipelined) keep_own(own.trained, micro.program, config.distribution.mesh);
  for (const Value& container : micro.zero.containers(micro.buckets))
    plan.layout->place(container, home_of(container, rewrites.offload, micro.zero.on_host()));
  const auto updates = [&](const Program& recorded) {
    return planned(update_program(recorded, rewrites, micro.buckets, micro.zero));
  };
  if (rewrites.offload) {
    plan_host_update(plan, own, micro, rewrites, planned, backend, device);
  } else {
    plan.update = updates(record_update_program(own, micro.copies));
    if (!micro.copies.empty()) plan.refresh = updates(record_refresh(config, micro.copies));
  }
  const ZeroPlan& zero = micro.zero;
  if (config.distribution.active() && !plan.pipelined)
    plan.last_micro = planned(last_micro_program(micro, rewrites));
  plan.micro = planned(plan.pipelined ? last_micro_program(micro, rewrites) : std::move(micro.program));
  plan.prefetch_bytes = image_bytes(plan.micro);
  plan.eval = planned(record_eval(config, false, rewrites, zero));
  if (plan.averages() && !plan.offload)
    plan.eval_average = planned(record_eval(config, true, rewrites, zero));
  return plan;
}

}  // namespace vitrail
