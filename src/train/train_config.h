// A training run as data: sections of plain structs, each listing its fields once. Read from JSON configs and
// --set, saved resolved beside every run. Knows no files and no devices.
#pragma once

#include <set>

#include "data/augment/augment_config.h"
#include "data/data_config.h"
#include "data/loader_config.h"
#include "image/preprocess_config.h"
#include "io/checkpoint/checkpoint.h"
#include "models/lora.h"
#include "models/vit_init.h"
#include "optim/param_groups.h"
#include "optim/schedule.h"
#include "train/mesh_config.h"
#include "train/step_config.h"

namespace vitrail {

enum class ComputeType { kF32, kBF16, kF16, kFp8, kTF32 };
template <>
struct EnumNames<ComputeType> {
  static constexpr const char* names[] = {"f32", "bf16", "f16", "fp8", "tf32"};
};

enum class TrainLoss { kSoftmax, kBceSum, kBceMean };
template <>
struct EnumNames<TrainLoss> {
  static constexpr const char* names[] = {"softmax", "bce_sum", "bce_mean"};
};
LossKind loss_kind(TrainLoss loss);

// The source of the model. The fields named in `given` replace those of the file or architecture.
struct ModelSettings {
  std::string init;  // a model to start from; empty: from scratch
  std::string arch;  // timm's name
  InitStyle style = InitStyle::kTimm;
  VitConfig fields;
  std::set<std::string> given;
  PreprocessConfig preprocess;
  std::set<std::string> preprocess_given;
};

struct RunConfig {
  int64_t epochs = 10;
  int64_t steps = 0;
  int64_t batch = 0, micro_batch = 0, accumulation = 0;
  int64_t seed = 0;
  ComputeType dtype = ComputeType::kF32;
  bool low_residual = false;
  Recompute recompute = Recompute::kNone;
  int64_t recompute_every = 1;
  TrainLoss loss = TrainLoss::kSoftmax;
  double smoothing = 0;
  double dropout = 0, drop_path = 0;
  int64_t eval_every = 0;
  int64_t eval_batch = 0;
  int64_t log_every = 10;
  int64_t save_every = 0;
  double save_minutes = 10;
  double max_minutes = 0;
  int64_t patience = 0;
  int64_t skip_limit = 10;
  int64_t rollbacks = 2;
  bool save_adapters = false;
  bool tensorboard = true;
  bool breakdown = false;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("epochs", c.epochs, "passes over the training data");
    v("steps", c.steps, "updates instead of epochs; 0: as many as the epochs have");
    v("batch", c.batch,
      "images an update (64 where nothing is said); batch = micro_batch x accumulation x mesh.dp, any two "
      "give "
      "the third");
    v("micro_batch", c.micro_batch, "images that a rank computes at once");
    v("accumulation", c.accumulation, "micro-batches whose gradients make one update");
    v("seed", c.seed, "seed of initialisation, order, augmentation and masks");
    v("dtype", c.dtype,
      "f32, or bf16 or f16 with f32 master weights; on a GPU also fp8, bf16 but for the blocks' GEMMs, "
      "and "
      "tf32, f32 but for these");
    v("low_residual", c.low_residual, "keep the residual stream in dtype too instead of f32");
    v("recompute", c.recompute,
      "none, norms, cheap (norms, activations, masks), mlp or block: compute again going back instead of "
      "keeping");
    v("recompute_every", c.recompute_every, "blocks that are kept as one (recompute = block)");
    v("loss", c.loss, "softmax, bce_sum or bce_mean");
    v("smoothing", c.smoothing, "label smoothing");
    v("dropout", c.dropout, "dropout after the positions and in every branch");
    v("drop_path", c.drop_path, "stochastic depth of the last block; earlier ones in proportion");
    v("eval_every", c.eval_every, "updates between evaluations; 0: every epoch");
    v("eval_batch", c.eval_batch, "images evaluated at once; 0: micro_batch");
    v("log_every", c.log_every, "updates between lines of metrics.jsonl");
    v("save_every", c.save_every, "updates between checkpoints; 0: by time alone");
    v("save_minutes", c.save_minutes, "minutes between checkpoints; 0: by updates alone");
    v("max_minutes", c.max_minutes,
      "stop with a checkpoint so long after the start (exit code 75); 0: no limit");
    v("patience", c.patience, "evaluations without a better result after which the run ends; 0: never");
    v("skip_limit", c.skip_limit, "updates in a row with NaN or Inf before going back to a checkpoint");
    v("rollbacks", c.rollbacks,
      "how often to go back, at half the learning rate each time, before giving up");
    v("save_adapters", c.save_adapters, "save LoRA adapters beside the model instead of merged into it");
    v("tensorboard", c.tensorboard, "write TensorBoard event files");
    v("breakdown", c.breakdown,
      "tell with every line of the log where the time went, rank by rank: compute, communication exposed and "
      "hidden, data wait, imbalance; with several ranks metrics.jsonl and the report have it anyway");
  }
};

struct TrainConfig {
  ModelSettings model;
  DataConfig data;
  AugmentConfig augment;
  LoaderConfig loader;
  RunConfig train;
  OptimConfig optim;
  ParamGroupConfig params;
  ScheduleConfig schedule;
  LossScaleConfig loss_scale;
  DistillConfig distill;
  LoraConfig lora;
  CheckpointPolicy checkpoint;
  MeshConfig mesh;

  // Visits every section with plain fields, by its name in JSON.
  template <typename Self, typename V>
  static void sections(Self& c, V&& v) {
    v("data", c.data);
    v("augment", c.augment);
    v("loader", c.loader);
    v("train", c.train);
    v("optim", c.optim);
    v("params", c.params);
    v("schedule", c.schedule);
    v("loss_scale", c.loss_scale);
    v("distill", c.distill);
    v("lora", c.lora);
    v("checkpoint", c.checkpoint);
    v("mesh", c.mesh);
  }
};

// Returns the mesh for so many ranks, as resolved() has it; one that is refused is told with meshes that cut
// the model's heads evenly.
MeshConfig resolved_mesh(const TrainConfig& config, int world);

// Returns the config for a run of `world` ranks, with the mesh, batch, micro_batch and accumulation completed
// and every section checked; throws Error(kConfig) naming key, value and rule.
TrainConfig resolved(TrainConfig config, int world = 1);

// Returns a config file that gives the same run; `model` as it was resolved.
Json to_json(const TrainConfig& config);

// Says what happens to another value of "section.field" in a resumed run: accepted, reported or refused.
enum class Change { kFree, kTold, kRefused };
Change change_of(std::string_view key);

// Returns the config without what may change freely; a resumed run is compared by it.
Json result_identity(const TrainConfig& config);

}  // namespace vitrail
