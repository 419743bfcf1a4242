// One flipped bit in what a rank holds of the model: the silent error of a memory or a device, made on
// purpose. For tests alone.
#pragma once

#include <string>

#include "train/train_step.h"

namespace vitrail {

struct BitPlace {
  std::string value;  // a persistent one
  size_t bit = 0;     // of its bytes, the lowest bit of the first byte first
};

// A place in the weights and moments of this rank, drawn by a random number: first the value, then the bit.
BitPlace drawn_bit(const TrainStep& step, uint64_t random);
void flip_bit(TrainStep& step, const BitPlace& place);

}  // namespace vitrail
