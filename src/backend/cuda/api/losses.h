// The losses as the program hands them to the CUDA plugin. Filled by launch_losses.cpp, read by
// device/losses.cu.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// One loss an image: of the softmax of its logits, or of the sigmoid of each, summed times `share`.
struct LossCall {
  Operand logits, targets;  // [images classes]
  Operand losses;           // [images]: the losses, or their gradients
  Operand dlogits;          // of the gradient only
  int64_t images = 0, classes = 0;
  bool softmax = true;
  bool less_entropy = false;  // with softmax: less the entropy of the targets
  float share = 1;            // without
};

// Adds each loss times its weight to its sum; losses of weight 0 are left out.
struct LossSumCall {
  double* sums = nullptr;   // [images]
  Operand losses, weights;  // [images]
  int64_t images = 0;
};

struct LossesApi {
  void (*forward)(Session&, const LossCall&);
  void (*backward)(Session&, const LossCall&);
  void (*sum)(Session&, const LossSumCall&);
};

}  // namespace vitrail::cuda
