// Activation checkpointing, and what a run tells.
#include "train/deepspeed/keys.h"

namespace vitrail::deepspeed {

void read_memory(Reader& reader) {
  const std::string block = "activation_checkpointing.";
  const bool partition = reader.flag(block + "partition_activations", "").value_or(false);
  const bool host = reader.flag(block + "cpu_checkpointing", "").value_or(false);
  const std::string count = block + "number_checkpoints";
  const Json* checkpoints = reader.find(count);
  const bool counted = checkpoints && !checkpoints->is_boolean() && reader.integer(count, "", {0, 1e6}) > 0;
  if (partition || host || counted) {
    const std::string path = block + (partition ? "partition_activations"
                                      : host    ? "cpu_checkpointing"
                                                : "number_checkpoints");
    if (reader.value_of("train.recompute") == "none") reader.set("train.recompute", "block", path);
  }
  const std::string interval = "pipeline.activation_checkpoint_interval";
  const int64_t every = reader.integer(interval, "", {0, 1e6}).value_or(0);
  if (every == 0) return;
  reader.set("train.recompute", "block", interval);
  reader.set("train.recompute_every", every, interval);
}

void read_output(Reader& reader) {
  reader.take_number("gradient_clipping", "optim.clip_norm", {0, 1e30});
  reader.take_integer("steps_per_print", "train.log_every", {1, kExact});  // a huge one means: never
  reader.take_flag("wall_clock_breakdown", "train.breakdown");
  reader.take_flag("tensorboard.enabled", "train.tensorboard");
}

}  // namespace vitrail::deepspeed
