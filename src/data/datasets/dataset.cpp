#include "data/dataset.h"

#include "base/rng.h"

namespace vitrail {

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

std::vector<int64_t> class_counts(const Dataset& dataset) {
  std::vector<int64_t> counts(dataset.classes().size());
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (const int32_t label : dataset.labels(i)) ++counts[static_cast<size_t>(label)];
  return counts;
}

std::vector<double> class_weights(const Dataset& dataset) {
  const std::vector<int64_t> counts = class_counts(dataset);
  double labels = 0, present = 0;
  for (const int64_t count : counts) labels += static_cast<double>(count), present += count > 0;
  std::vector<double> weights(counts.size());
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) weights[i] = labels / (present * static_cast<double>(counts[i]));
  return weights;
}

}  // namespace vitrail
