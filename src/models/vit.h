// The Vision Transformer as a recorded Program: the network of the ViT paper with the variations VitConfig
// names. Model code records ops; it knows nothing of where or how they run.
#pragma once

#include "graph/program.h"
#include "models/vit_config.h"

namespace vitrail {

struct VitRecordOptions {
  int64_t batch = 1;
  DType dtype = DType::kF32;
  bool features = false;  // also output "features", the pooled vector before the head
  bool layers = false;  // also output "embed", "blocks.i" and "tokens" (after the last norm, before pooling)
  bool attention = false;        // also output "blocks.i.attention", the softmax weights [B H N M]
  int64_t attention_block = -1;  // of this block alone; -1: of every block
  bool probabilities = false;    // also output "probs", the softmax of the logits
};

// Input "pictures" [B C Y X]; outputs "logits" (when the model has a head; else "features") and what was
// asked for.
Program record_vit(const VitConfig& config, const VitRecordOptions& options = {});

}  // namespace vitrail
