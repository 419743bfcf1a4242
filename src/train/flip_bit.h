// One flipped bit in what a rank holds of the model: the silent error of a memory or a device, made on
// purpose. For tests alone.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "train/train_step.h"

namespace vitrail {

struct BitPlace {
  std::string value;  // a persistent one
  size_t bit = 0;     // of its bytes, the lowest bit of the first byte first
};

// Returns a place in the weights and moments of this rank, drawn by a random number: first the value, then
// the bit.
inline BitPlace drawn_bit(const TrainStep& step, uint64_t random) {
  std::vector<const PersistentValue*> values;
  for (const PersistentValue& value : step.store().layout().values()) {
    const bool moment = value.category == Category::kOptimizer && value.desc.elems() > 1;
    if ((value.kind == ValueKind::kParameter || moment) && !value.is_container && value.desc.elems() > 0)
      values.push_back(&value);
  }
  VT_CHECK(!values.empty(), "the rank holds nothing");
  const PersistentValue& value = *values[counter_hash(random, 0) % values.size()];
  return {value.name, counter_hash(random, 1) % (8 * value.desc.bytes())};
}

inline void flip_bit(TrainStep& step, const BitPlace& place) {
  const PersistentStore& store = step.store();
  const PersistentValue& value = store.layout().at(place.value);
  std::vector<std::byte> bytes(value.desc.bytes());
  store.read(value, bytes);
  bytes.at(place.bit / 8) ^= static_cast<std::byte>(1 << place.bit % 8);
  store.write(value, bytes);
}

}  // namespace vitrail
