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
  kSigmoid,
  // These run on CPUs alone so far.
  kSelu,
  kHardSigmoid,
  kHardMish,
  kIdentity,
  kLaplace,       // the distribution function of a normal with mean 0.707107 and deviation 0.282095
  kRelu2,         // the square of the relu
  kSqrtSoftplus,  // the root of log(1 + exp(x))
  kGelu10         // the erf gelu, at most 10
};

template <>
struct EnumNames<ActKind> {
  static constexpr const char* names[] = {"gelu",    "relu",  "relu6",         "leaky_relu", "elu",
                                          "silu",    "mish",  "quick_gelu",    "hard_swish", "tanh",
                                          "sigmoid", "selu",  "hard_sigmoid",  "hard_mish",  "identity",
                                          "laplace", "relu2", "sqrt_softplus", "gelu_10"};
};

}  // namespace vitrail
