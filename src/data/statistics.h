// Says what the images of a dataset are like: their sizes, and mean and deviation of their channels. It adds
// up whole numbers, so that the result does not depend on the order or on the threads.
#pragma once

#include <array>
#include <vector>

#include "base/timing.h"
#include "data/dataset.h"
#include "data/walk.h"

namespace vitrail {

// Sums of whole numbers: the same in any order.
struct ImageSums {
  int64_t height = 0, width = 0, channels = 0;
  std::array<uint64_t, 3> sum{}, squares{};
};

ImageSums sums_of(const Image& image);

class ImageStatistics {
 public:
  void add(const ImageSums& one) {
    heights_.push_back(static_cast<double>(one.height));
    widths_.push_back(static_cast<double>(one.width));
    channels_ = std::max(channels_, one.channels);
    pixels_ += static_cast<uint64_t>(one.height * one.width);
    for (size_t c = 0; c < 3; ++c) {
      sum_[c] += one.sum[c];
      squares_[c] += one.squares[c];
    }
  }

  size_t count() const { return heights_.size(); }
  int64_t channels() const { return channels_; }
  Spread heights() const { return spread_of(heights_); }
  Spread widths() const { return spread_of(widths_); }

  // These count pixels as 0..1, as configs give them.
  std::vector<double> mean() const;
  std::vector<double> deviation() const;

 private:
  double average(uint64_t total) const { return static_cast<double>(total) / static_cast<double>(pixels_); }

  std::vector<double> heights_, widths_;
  int64_t channels_ = 0;
  uint64_t pixels_ = 0;
  std::array<uint64_t, 3> sum_{}, squares_{};
};

struct DatasetStatistics {
  ImageStatistics images;
  int64_t looked_at = 0, bad = 0;  // bad: cannot be read
};
// Looks at no more than `limit` images (0: all), spread evenly over the dataset.
DatasetStatistics statistics_of(const Dataset& data, int64_t limit, ThreadPool& pool, const WalkHooks& hooks);

// `count` samples drawn by the seed, then sorted by class: the same for the same seed. `only`: of this class
// alone; Error(kUsage) when the data has none of that name.
std::vector<int64_t> sample_of(const Dataset& data, int64_t count, uint64_t seed, const std::string& only);

}  // namespace vitrail
