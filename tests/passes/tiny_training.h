// The forward part of a training step of a small ViT, as the trainer records it, for tests that differentiate
// and run it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "models/vit.h"
#include "ops/cross_entropy.h"
#include "passes/pipeline.h"

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

// Keeps the program that the pipeline has after one of its passes, so that a test need not know which passes
// come before.
class After {
 public:
  explicit After(std::string_view pass) : pass_(pass) {}

  AfterPass hook() {
    return [this](std::string_view pass, const Program& program) {
      if (pass == pass_) program_ = program;
    };
  }
  Program take() {
    if (program_.values.empty()) throw Error(ErrorKind::kInternal, "no pass " + std::string(pass_));
    return std::move(program_);
  }

 private:
  std::string_view pass_;
  Program program_;
};

inline Program inference_after(std::string_view pass, Program recorded, const Rewrites& rewrites = {}) {
  After after(pass);
  inference_program(std::move(recorded), rewrites, after.hook());
  return after.take();
}

inline Program step_after(std::string_view pass, const VitConfig& config, const Rewrites& rewrites = {},
                          const VitRecordOptions& options = {}, Trained trained = nullptr) {
  Recorded recorded = record_loss(config, options);
  After after(pass);
  micro_program(std::move(recorded.program), {.seed = recorded.seed, .trained = std::move(trained)}, rewrites,
                after.hook());
  return after.take();
}

inline Program record_step(const VitConfig& config, const VitRecordOptions& options = {},
                           Trained trained = nullptr, Arithmetic arithmetic = Arithmetic::kExact) {
  return step_after("differentiate", config, {.arithmetic = arithmetic}, options, std::move(trained));
}

inline std::vector<std::string> kinds(const Program& program) {
  std::vector<std::string> result;
  for (const Node& node : program.nodes) result.emplace_back(node.op->kind());
  return result;
}

inline std::map<std::string, int> count_kinds(const Program& program) {
  std::map<std::string, int> counts;
  for (const Node& node : program.nodes) ++counts[std::string(node.op->kind())];
  return counts;
}

}  // namespace vitrail
