// Describes how batches are loaded, as data: worker threads, prefetching, broken samples, imbalanced classes.
// Knows no images.
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace vitrail {

enum class OnError { kFail, kSkip };

template <>
struct EnumNames<OnError> {
  static constexpr const char* names[] = {"fail", "skip"};
};

// Says which part of the image pipeline runs on the device: see choose_images().
enum class OnDevice { kAuto, kOff, kImages, kDataset };

template <>
struct EnumNames<OnDevice> {
  static constexpr const char* names[] = {"auto", "off", "images", "dataset"};
  static constexpr FormerName former[] = {{"pictures", "images"}};
};

struct LoaderConfig {
  int64_t workers = 0;
  int64_t prefetch = 3;
  OnError on_error = OnError::kFail;
  double max_bad_fraction = 0.001;
  bool balanced = false;
  bool class_weights = false;
  OnDevice on_device = OnDevice::kAuto;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("workers", c.workers, "threads that decode and augment; 0: half of the machine's, at most 16");
    v("prefetch", c.prefetch, "micro-batches to prefetch");
    v("on_error", c.on_error, "a sample that cannot be read: fail (naming it) or skip (named, weight 0)");
    v("max_bad_fraction", c.max_bad_fraction,
      "share of the set that may be skipped before it fails after all");
    v("balanced", c.balanced, "show every class equally often");
    v("class_weights", c.class_weights, "weigh samples by the inverse frequency of their class");
    v("on_device", c.on_device,
      "training images reach the device as: off (normalised floats), images (8-bit pixels that it crops, "
      "flips, normalises, erases and mixes), dataset (the same from all of them, kept there), auto (on a GPU "
      "dataset where small, else images; on the CPU off); results do not change");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const LoaderConfig& config);

}  // namespace vitrail
