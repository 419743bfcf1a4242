// Automatic augmentation policies: RandAugment written as timm writes it ("rand-m9-mstd0.5-inc1") or with
// torchvision's operations and levels ("torchvision-m9-n2"), AutoAugment ("original" and "v0" for ImageNet as
// in timm, "cifar10" as in torchvision) and DeiT III's 3-Augment ("3a"). A published table of sub-policies is
// one row in policy_tables.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "data/augment/policy_ops.h"

namespace vitrail {

struct PolicyStep {
  PolicyOp op;
  double probability, level;
};

struct PolicyTable {
  const char* name;
  LevelScale scale;
  size_t steps;  // of one sub-policy
  std::span<const PolicyStep> entries;
};

std::span<const PolicyTable> policy_tables();

struct Policy {
  enum class Kind { kNone, kRand, kTable } kind = Kind::kNone;
  LevelScale scale = LevelScale::kPlain;
  // RandAugment
  std::span<const PolicyOp> ops;
  double magnitude = 10, magnitude_most = 10, probability = 0.5;
  int64_t layers = 2;
  // The standard deviation of the level, also for tables; above 100 means uniform from 0 to the magnitude.
  double magnitude_deviation = 0;
  const PolicyTable* table = nullptr;
};

// Parses a policy; empty or "none" is no policy. Throws Error(kConfig) naming the part that is not
// understood.
Policy parse_policy(std::string_view text);

struct PolicyLook {
  bool random_interpolation = true;  // bilinear or bicubic, drawn for every operation
  Sampling sampling;                 // the interpolation otherwise, and the colour outside
};

// One operation with its drawn argument.
struct PolicyDraw {
  PolicyOp op;
  double argument;
  Interpolation interpolation;
};

// Draws the operations for an image of this size, in order; operations that are skipped by chance do not
// appear.
std::vector<PolicyDraw> draw_policy(const Policy& policy, const PolicyLook& look, Size image, Draw& draw);

void apply_policy(const Policy& policy, const PolicyLook& look, Draw& draw, Image& image);

}  // namespace vitrail
