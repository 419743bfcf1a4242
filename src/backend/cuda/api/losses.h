// The arguments of the losses as the program passes them to the CUDA plugin; nothing about ops or graphs.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// One loss per image: that of the softmax of its logits, or that of the sigmoid of each logit, summed and
// multiplied by `share`.
struct LossCall {
  Operand logits, targets;  // [images classes]
  Operand losses;           // [images]: the losses, or their gradients
  Operand dlogits;          // for the gradient only
  int64_t images = 0, classes = 0;
  bool softmax = true;
  bool less_entropy = false;  // with softmax: minus the entropy of the targets
  float share = 1;            // without softmax
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
