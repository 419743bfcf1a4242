// Computes what every dataset has: fingerprints of its samples, and the counts and weights of its classes.
#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace vitrail {

std::optional<uint64_t> contents_key(const Dataset& dataset, int64_t index) {
  try {
    if (const std::optional<std::string> file = dataset.encoded(index)) return name_key(*file);
    const Image image = dataset.load(index, 0);
    return name_key({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
  } catch (const Error&) {
    return std::nullopt;
  }
}

uint64_t Dataset::stored_bytes(int64_t) const {
  const PixelShape shape = pixel_shape().value_or(PixelShape{});
  return static_cast<uint64_t>(shape.height * shape.width * shape.channels);
}

uint64_t Dataset::fingerprint() const {
  uint64_t print = counter_hash(name_key("dataset"), static_cast<uint64_t>(size_));
  const auto mix = [&](uint64_t value) { print = counter_hash(print, value); };
  mix(multi_label_ ? 1 : 0);
  mix(classes_.size());
  for (const std::string& name : classes_) mix(name_key(name));
  for (int64_t i = 0; i < size_; ++i) {
    mix(name_key(sample_name(i)));
    const auto own = labels(i);
    mix(own.size());
    for (const int32_t label : own) mix(static_cast<uint64_t>(label));
  }
  return print;
}

uint64_t Dataset::contents_fingerprint() const {
  constexpr int64_t kLooked = 64;
  const int64_t count = std::min(size_, kLooked);
  uint64_t print = name_key("contents");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = count > 1 ? i * (size_ - 1) / (count - 1) : 0;
    // All unreadable samples share one key: the loader decides how to treat them.
    print = counter_hash(print, contents_key(*this, index).value_or(name_key("unreadable")));
  }
  return print;
}

std::vector<int64_t> class_counts(const Dataset& dataset) {
  std::vector<int64_t> counts(dataset.classes().size());
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (const int32_t label : dataset.labels(i)) ++counts[static_cast<size_t>(label)];
  return counts;
}

std::vector<double> class_weights(const Dataset& dataset) {
  const std::vector<int64_t> counts = class_counts(dataset);
  double labels = 0, present = 0;
  for (const int64_t count : counts) {
    labels += static_cast<double>(count);
    present += count > 0;
  }
  std::vector<double> weights(counts.size());
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) weights[i] = labels / (present * static_cast<double>(counts[i]));
  return weights;
}

}  // namespace vitrail
