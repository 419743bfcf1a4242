// The forward part of a training step of a small ViT, as the trainer records it, for tests that differentiate
// and run it.
#pragma once

#include <map>
#include <string>

#include "graph/builder.h"
#include "models/vit.h"
#include "ops/cross_entropy.h"
#include "passes/passes.h"

namespace vitrail {

inline VitConfig tiny_vit(int64_t depth) {
  VitConfig c;
  c.image_height = c.image_width = 16;
  c.patch = 8;
  c.width = 8;
  c.depth = depth;
  c.heads = 2;
  c.mlp = 16;
  c.classes = 3;
  return c;
}

// Outputs "loss" [B] and "logits"; the loss is weighted by the input "weights".
struct Recorded {
  Program program;
  ValueId seed = -1;
};

inline Recorded record_loss(const VitConfig& config, const VitRecordOptions& options) {
  Builder b;
  const VitValues vit = record_vit_for_training(b, config, options);
  const ValueId targets = b.input("targets", b.desc(vit.logits));
  const ValueId loss = b.add<CrossEntropyOp>({vit.logits, targets}, "loss", LossKind::kSoftmax);
  b.output("loss", loss);
  b.output("logits", vit.logits);
  const ValueId seed = b.input("weights", b.desc(loss));
  return {b.finish(), seed};
}

using Trained = std::function<bool(const std::string&)>;

inline Program record_step(const VitConfig& config, const VitRecordOptions& options = {},
                           Trained trained = nullptr, Arithmetic arithmetic = Arithmetic::kExact) {
  Recorded recorded = record_loss(config, options);
  return differentiate(gemm_precision(std::move(recorded.program), arithmetic),
                       {.seed = recorded.seed, .trained = std::move(trained)});
}

inline std::map<std::string, int> count_kinds(const Program& program) {
  std::map<std::string, int> counts;
  for (const Node& node : program.nodes) ++counts[std::string(node.op->kind())];
  return counts;
}

}  // namespace vitrail
