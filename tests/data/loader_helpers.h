// Helpers of the loader's tests: small settings, and batches kept to compare.
#pragma once

#include "data/fake_dataset.h"
#include "data/loader.h"

namespace vitrail::test {

inline LoaderSettings small_settings(int64_t workers = 2) {
  LoaderSettings s;
  s.loader.workers = workers;
  s.preprocess.height = s.preprocess.width = s.preprocess.resize = 8;
  s.seed = 11;
  s.micro_batch = 8;
  s.classes = 5;
  return s;
}

// Everything a batch holds, to compare.
struct Copy {
  int64_t index, step, micro, epoch;
  std::vector<float> images, targets, weights;
  std::vector<int32_t> labels;
  std::vector<int64_t> samples;
  bool operator==(const Copy&) const = default;
};

template <typename T>
std::vector<T> vector_of(std::span<const T> span) {
  return {span.begin(), span.end()};
}

inline Copy copy_of(const Batch& b) {
  return {b.index,
          b.step,
          b.micro,
          b.epoch,
          vector_of(b.images),
          vector_of(b.targets),
          vector_of(b.weights),
          vector_of(b.labels),
          vector_of(b.samples)};
}

inline std::vector<Copy> take(Loader& loader, int count) {
  std::vector<Copy> batches;
  batches.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) batches.push_back(copy_of(loader.next()));
  return batches;
}

}  // namespace vitrail::test
