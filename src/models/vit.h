// The Vision Transformer as a recorded Program: the network of the ViT paper with the variations VitConfig
// names, and what training adds to it: dropout, stochastic depth, low-rank adapters. Model code records ops;
// it knows nothing of where or how they run.
#pragma once

#include "graph/builder.h"
#include "models/lora.h"
#include "models/vit_config.h"

namespace vitrail {

struct VitRecordOptions {
  int64_t batch = 1;
  DType dtype = DType::kF32;
  bool features = false;  // also output "features", the pooled vector before the head
  // The model also outputs "embed", "blocks.i" and "tokens" (after the last norm, before pooling). Without it
  // the last block may compute the class token alone.
  bool layers = false;
  bool attention = false;        // also output "blocks.i.attention", the softmax weights [B H N M]
  int64_t attention_block = -1;  // of this block alone; -1: of every block
  bool probabilities = false;    // also output "probs", the softmax of the logits

  // These are for training. The input "counters" i64 [Z3] (seed, step, position) exists when either is above
  // 0.
  double dropout = 0;    // after the positions and in every branch
  double drop_path = 0;  // of the last block; earlier ones in proportion
  LoraConfig lora = {};
  ValueId images = -1;  // recorded by the caller, [B C Y X]; -1: the input "images"
};

struct VitValues {
  ValueId logits = -1;     // for a distilled model in training, the class head alone
  ValueId distilled = -1;  // the distillation head
  ValueId counters = -1;
};

// Records the model: input "images" [B C Y X]; outputs "logits" (when the model has a head; else
// "features") and those requested.
Program record_vit(const VitConfig& config, const VitRecordOptions& options = {});

// Records the model into an open program, without averaging the two heads, because a loss follows.
VitValues record_vit_for_training(Builder& builder, const VitConfig& config, const VitRecordOptions& options);

}  // namespace vitrail
