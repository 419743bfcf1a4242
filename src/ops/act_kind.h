// The activation functions of an MLP: the names that model configs hold, shared with the op that computes
// them.
#pragma once

#include "base/enum_names.h"

namespace vitrail {

enum class ActKind {
  kGelu,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kSilu,
  kMish,
  kQuickGelu,
  kHardSwish,
  kTanh,
  kSigmoid
};

template <>
struct EnumNames<ActKind> {
  static constexpr const char* names[] = {"gelu", "relu",       "relu6",      "leaky_relu", "elu",    "silu",
                                          "mish", "quick_gelu", "hard_swish", "tanh",       "sigmoid"};
};

}  // namespace vitrail
