#include "train/step_plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/rng.h"
#include "ops/elementwise.h"
#include "ops/make_images.h"
#include "ops/persistent.h"
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

Program record_update_program(const StepConfig& config,
                              const std::vector<std::pair<std::string, std::string>>& copies) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  record_update(b, config.trained, config.optim, config.loss_scale);
  std::unordered_map<std::string_view, const TensorDesc*> trained;
  for (const TrainedParam& param : config.trained) trained.emplace(param.name, &param.desc);
  for (const auto& [master, copy] : copies) {
    const auto found = trained.find(master);
    if (found == trained.end()) continue;
    const TensorDesc& desc = *found->second;
    const ValueId target = b.state(copy, {config.precision.compute, desc.shape}, Category::kParameters);
    b.add_all<CopyIntoOp>({target, b.parameter(master, desc)}, copy);
  }
  return b.finish();
}

// Fills every low-precision copy, of frozen parameters too.
Program record_refresh(const StepConfig& config,
                       const std::vector<std::pair<std::string, std::string>>& copies) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  std::unordered_map<std::string, Shape> shapes;
  for (ParamSpec& spec : step_params(config.model, config.lora))
    shapes.emplace(spec.name, std::move(spec.shape));
  for (const auto& [master, copy] : copies) {
    const Shape& shape = shapes.at(master);
    const ValueId target = b.state(copy, {config.precision.compute, shape}, Category::kParameters);
    b.add_all<CopyIntoOp>({target, b.parameter(master, {config.master, shape})}, copy);
  }
  return b.finish();
}

Rewrites rewrites_of(const StepConfig& config, const RewriteTraits& traits) {
  return {.arithmetic = config.arithmetic,
          .precision = config.precision,
          .distribution = config.distribution,
          .stages = config.stages,
          .bucket_bytes = config.bucket_bytes,
          .zero = config.zero,
          .whole_sums = config.whole_sums,
          .averages = config.optim.ema_decay > 0,
          .recompute = config.recompute,
          .traits = traits};
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
        value = {ema_name(value.name), value.desc, ValueKind::kState, Category::kOptimizer};
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

// Returns the bytes of a micro-batch's images, where inputs are staged outside the arena.
size_t image_bytes(const ExecutionPlan& micro) {
  size_t bytes = 0;
  for (size_t id = 0; id < micro.program.values.size(); ++id) {
    const Value& value = micro.program.values[id];
    if (micro.memory.values[id].staged && (value.name == "pixels" || value.name == "images"))
      bytes += value.desc.bytes();
  }
  return bytes;
}

}  // namespace

MicroProgram record_micro(const StepConfig& config, const RewriteTraits& traits, const AfterPass& after) {
  Builder b;
  VitRecordOptions options = record_options(config);
  options.images = record_images(b, config);
  const VitValues vit = record_vit_for_training(b, config.model, options);
  const ValueId loss = record_loss(b, config, vit);
  b.output("loss", loss);
  b.output("logits", vit.logits);
  ValueId seed = b.input("weights", b.desc(loss));
  const TensorDesc sums{DType::kF64, b.desc(loss).shape};
  b.add_all<LossSumOp>({b.state(kLossSums, sums, Category::kGradients), loss, seed}, "loss_sum");
  if (config.loss_scale.dynamic || config.loss_scale.initial != 1)
    seed = b.add<ScaleByOp>({seed, b.state(kLossScaleState, loss_scale_desc(), Category::kOptimizer)},
                            "loss_scale");
  const auto trained = [names = names_of(config.trained)](const std::string& name) {
    return names.contains(name);
  };
  return micro_program(b.finish(), {.loss = "loss", .seed = seed, .trained = trained},
                       rewrites_of(config, traits), after);
}

StepPlan plan_step(const StepConfig& config, const Backend& backend, const DeviceInfo& device) {
  require_arithmetic(backend, device, config.arithmetic);
  StepPlan plan;
  plan.config = config;
  plan.layout = std::make_shared<PersistentLayout>();
  const PlanOptions options{.pack = false, .layout = plan.layout};
  const auto planned = [&](Program program) {
    return plan_execution(std::move(program), backend, device, options);
  };
  Rewrites rewrites = rewrites_of(config, backend.traits());
  plan.pipelined = config.distribution.mesh.size(Axis::kPipeline) > 1;
  MicroProgram micro =
      record_micro(config, rewrites.traits, [&](std::string_view pass, const Program& program) {
        if (pass == "precision" && config.distribution.active()) plan.recorded = name_key(to_string(program));
      });
  rewrites.stages.begins = plan.config.stages.begins = micro.begins;
  StepConfig own = config;
  if (plan.pipelined) keep_own(own.trained, micro.program, config.distribution.mesh);
  for (const Value& container : micro.zero.containers(micro.buckets)) plan.layout->place(container);
  const auto updates = [&](const Program& recorded) {
    return planned(update_program(recorded, rewrites, micro.buckets, micro.zero));
  };
  plan.update = updates(record_update_program(own, micro.copies));
  if (!micro.copies.empty()) plan.refresh = updates(record_refresh(config, micro.copies));
  const ZeroPlan& zero = micro.zero;
  if (config.distribution.active() && !plan.pipelined)
    plan.last_micro = planned(last_micro_program(micro, rewrites));
  plan.micro = planned(plan.pipelined ? last_micro_program(micro, rewrites) : std::move(micro.program));
  plan.prefetch_bytes = image_bytes(plan.micro);
  plan.eval = planned(record_eval(config, false, rewrites, zero));
  if (config.optim.ema_decay > 0) plan.eval_average = planned(record_eval(config, true, rewrites, zero));
  return plan;
}

std::vector<PipelineTurn> StepPlan::turns() const {
  return pipelined ? pipeline_turns(config.stages.shape(config.distribution.mesh))
                   : std::vector<PipelineTurn>();
}

std::vector<const ExecutionPlan*> StepPlan::programs() const {
  std::vector<const ExecutionPlan*> list = {&micro, &update, &eval};
  if (last_micro) list.push_back(&*last_micro);
  if (eval_average) list.push_back(&*eval_average);
  if (refresh) list.push_back(&*refresh);
  return list;
}

size_t StepPlan::transient_bytes() const {
  size_t most = 0;
  for (const ExecutionPlan* plan : programs()) most = std::max(most, plan->memory.transient_bytes);
  return most;
}

size_t StepPlan::image_staging_bytes() const {
  const size_t average = eval_average ? eval_average->memory.staging_bytes : 0;
  return std::max({micro.memory.staging_bytes, eval.memory.staging_bytes, average});
}

size_t StepPlan::staging_bytes() const {
  return image_staging_bytes() + prefetch_bytes + update.memory.staging_bytes +
         (refresh ? refresh->memory.staging_bytes : 0);
}

size_t StepPlan::lower_bound_bytes() const {
  size_t most = 0;
  for (const ExecutionPlan* plan : programs()) most = std::max(most, plan->memory.lower_bound_bytes);
  return layout->bytes() + staging_bytes() + most;
}

std::array<size_t, kCategoryCount> StepPlan::by_category() const {
  const std::vector<const ExecutionPlan*> list = programs();
  const ExecutionPlan& largest =
      **std::max_element(list.begin(), list.end(), [](const ExecutionPlan* a, const ExecutionPlan* b) {
        return a->memory.lower_bound_bytes < b->memory.lower_bound_bytes;
      });
  std::array<size_t, kCategoryCount> bytes = largest.memory.alive;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes[c] += layout->bytes(static_cast<Category>(c));
  bytes[static_cast<size_t>(Category::kStaging)] += staging_bytes();
  return bytes;
}

NamedBytes StepPlan::memory_rows(const NamedBytes& beside) const {
  NamedBytes rows = vitrail::memory_rows(by_category(), peak_bytes());
  rows.insert(rows.end(), beside.begin(), beside.end());
  return rows;
}

}  // namespace vitrail
