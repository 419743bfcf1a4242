// Everything that shapes one training step: the model, its losses and masks, number types, what is
// recomputed, which parameters learn and how. Made by the trainer from its config; read by plan_step.
#pragma once

#include "image/image_recipe.h"
#include "models/vit.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "optim/optimizer.h"
#include "passes/passes.h"
#include "passes/precision.h"

namespace vitrail {

// Learning from a teacher's answers as well: its softened probabilities, or its first choice.
enum class DistillKind { kNone, kSoft, kHard };
template <>
struct EnumNames<DistillKind> {
  static constexpr const char* names[] = {"none", "soft", "hard"};
};

struct DistillConfig {
  DistillKind kind = DistillKind::kNone;
  std::string teacher;     // a model
  double alpha = 0.5;      // weight of the teacher's part
  double temperature = 3;  // of the soft kind

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("kind", c.kind, "none, soft (the teacher's probabilities) or hard (its first choice)");
    v("teacher", c.teacher, "model folder or file of the teacher");
    v("alpha", c.alpha, "weight of the teacher's part of the loss, 0..1");
    v("temperature", c.temperature, "both sides' logits are divided by it (soft)");
  }
};

struct StepConfig {
  VitConfig model;
  int64_t micro_batch = 32;
  int64_t eval_batch = 32;
  ImageForm images = ImageForm::kFloats;  // of training; evaluation takes floats
  int64_t stored_images = 0;              // of kStored
  DType master = DType::kF32;  // of weights, gradient sums and optimizer state; f64 on the reference backend
  PrecisionOptions precision;
  Arithmetic arithmetic = Arithmetic::kExact;  // of the GEMMs in the blocks; fp8 and tf32 learn
  double dropout = 0, drop_path = 0;
  LoraConfig lora;
  LossKind loss = LossKind::kSoftmax;
  DistillConfig distill;
  RecomputeOptions recompute;
  std::vector<TrainedParam> trained;
  OptimConfig optim;
  LossScaleRule loss_scale;
};

}  // namespace vitrail
