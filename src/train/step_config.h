// Everything that shapes one training step: the model, its losses and masks, number types, recomputation,
// which parameters are trained and how. Knows no data and no device.
#pragma once

#include "image/image_recipe.h"
#include "models/vit.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "optim/optimizer.h"
#include "passes/distribute.h"
#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/stages.h"

namespace vitrail {

// Distillation: learning from a teacher's softened probabilities (soft) or from its top-1 class (hard), too.
enum class DistillKind { kNone, kSoft, kHard };
template <>
struct EnumNames<DistillKind> {
  static constexpr const char* names[] = {"none", "soft", "hard"};
};

struct DistillConfig {
  DistillKind kind = DistillKind::kNone;
  std::string teacher;     // path or name of the teacher's model
  double alpha = 0.5;      // weight of the teacher's part
  double temperature = 3;  // of soft distillation

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("kind", c.kind, "none, soft (the teacher's probabilities) or hard (its first choice)");
    v("teacher", c.teacher, "model folder or file of the teacher");
    v("alpha", c.alpha, "weight of the teacher's part of the loss, 0..1");
    v("temperature", c.temperature, "both sides' logits are divided by it (soft)");
  }
};

// Says what of a step lies in the host's memory instead of the device's.
enum class Offload { kNone, kOptimizer, kParameters };
template <>
struct EnumNames<Offload> {
  static constexpr const char* names[] = {"none", "optimizer", "parameters"};
};

struct StepConfig {
  VitConfig model;
  int64_t micro_batch = 32;
  int64_t eval_batch = 32;
  ImageForm images = ImageForm::kFloats;  // form of training images; evaluation uses floats
  int64_t stored_images = 0;              // number of images, for kStored
  DType master = DType::kF32;  // of weights, gradient sums and optimizer state; f64 on the reference backend
  PrecisionOptions precision;
  Arithmetic arithmetic = Arithmetic::kExact;  // of the GEMMs in the blocks; training supports fp8 and tf32
  double dropout = 0, drop_path = 0;
  LoraConfig lora;
  LossKind loss = LossKind::kSoftmax;
  DistillConfig distill;
  RecomputeOptions recompute;
  std::vector<TrainedParam> trained;
  OptimConfig optim;
  LossScaleRule loss_scale;
  Distribution distribution;  // micro_batch and eval_batch are those of all ranks together
  StageOptions stages;        // where the mesh is a pipeline
  int zero = 0;               // ZeRO's stage
  bool whole_sums = false;    // ZeRO 2 and 3 keep whole gradient sums until the update
  size_t bucket_bytes = 0;    // of gradients that ranks exchange at once; 0: by their size
  Offload offload = Offload::kNone;
  int host_threads = 0;  // that update what lies on the host of a GPU; 0: one per core
};

}  // namespace vitrail
