// The order of samples: a pure function of (seed, epoch, position), computed for any position without the
// ones before it, so ranks, workers and resuming change nothing. Reads labels, never images.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace vitrail {

enum class Order {
  kSequential,  // every sample once, for evaluation
  kShuffled,    // every sample once per epoch, in an order of its own
  kBalanced     // every class equally often; the samples of a class by turns
};

// Returns where `index` goes in the permutation of 0..size-1 that `key` names: a Feistel network over
// the next power of four, iterated until the result is below `size`.
int64_t permuted(uint64_t key, int64_t size, int64_t index);

class Sampler {
 public:
  // `repeats` is how often a sample follows itself (repeated augmentation; an epoch of n positions then shows
  // n / repeats samples). Sequential order ignores seed and repeats.
  Sampler(const Dataset& dataset, Order order, uint64_t seed, int64_t repeats = 1);

  // Positions past the end start over in another order; in sequential order they hold no sample, -1.
  int64_t sample_at(int64_t epoch, int64_t position) const;

 private:
  int64_t balanced(int64_t epoch, int64_t turn) const;

  Order order_;
  uint64_t seed_;
  int64_t size_, repeats_;
  std::vector<int64_t> by_class_;      // samples of the first class, of the second...
  std::vector<int64_t> class_starts_;  // and where each starts; one more at the end
};

// Returns the steps of `global_batch` samples in one epoch of a set of `size`: the remainder is left to
// another epoch; a set smaller than one batch fills it by starting over.
int64_t steps_per_epoch(int64_t size, int64_t global_batch);

}  // namespace vitrail
