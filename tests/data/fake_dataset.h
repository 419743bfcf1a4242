// A dataset for the sampler's and the loader's tests: images by the rule of scene(), some of them broken.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "data/dataset.h"
#include "data/image_helpers.h"

namespace vitrail::test {

// tools/make_augment_goldens.py has the same rule.
inline Image scene(int64_t height, int64_t width, int64_t channels, uint32_t seed) {
  Image image = noise(height, width, channels, seed);
  if (seed % 2) return image;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        uint8_t& pixel = image.row(y)[x * channels + c];
        const int64_t slope = x * 120 / width + y * 30 / height + 40 * c;
        pixel = static_cast<uint8_t>(std::min<int64_t>(slope + pixel / 4, 255));
      }
  return image;
}

class FakeDataset : public Dataset {
 public:
  FakeDataset(int64_t count, int64_t classes, int64_t side = 12, int64_t channels = 3)
      : side_(side), channels_(channels) {
    size_ = count;
    for (int64_t c = 0; c < classes; ++c) classes_.push_back("class" + std::to_string(c));
    for (int64_t i = 0; i < count; ++i) labels_.push_back({static_cast<int32_t>(i % classes)});
  }

  std::string sample_name(int64_t index) const override { return "fake#" + std::to_string(index); }
  std::span<const int32_t> labels(int64_t index) const override {
    return labels_[static_cast<size_t>(index)];
  }
  Image load(int64_t index, int64_t) const override {
    ++loads;
    if (delay.count()) std::this_thread::sleep_for(delay);
    if (broken.contains(index)) throw Error(ErrorKind::kData, sample_name(index) + ": cut short");
    return scene(side_, side_ + index % 3, channels_, static_cast<uint32_t>(index));
  }

  void set_labels(int64_t index, std::vector<int32_t> labels) {
    labels_[static_cast<size_t>(index)] = std::move(labels);
  }
  void set_multi_label() { multi_label_ = true; }

  std::set<int64_t> broken;
  std::chrono::microseconds delay{0};
  mutable std::atomic<int64_t> loads{0};

 private:
  int64_t side_, channels_;
  std::vector<std::vector<int32_t>> labels_;
};

}  // namespace vitrail::test
