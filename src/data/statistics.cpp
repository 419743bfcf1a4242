#include "data/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "base/text.h"

namespace vitrail {

ImageSums sums_of(const Image& image) {
  ImageSums sums{image.height, image.width, image.channels, {}, {}};
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const uint64_t value = image.pixels[i];
    sums.sum[i % channels] += value;
    sums.squares[i % channels] += value * value;
  }
  for (size_t c = channels; c < 3; ++c) {
    sums.sum[c] = sums.sum[0];
    sums.squares[c] = sums.squares[0];
  }
  return sums;
}

std::vector<double> ImageStatistics::mean() const {
  std::vector<double> values;
  for (int64_t c = 0; c < channels_; ++c) values.push_back(average(sum_[static_cast<size_t>(c)]) / 255);
  return values;
}

std::vector<double> ImageStatistics::deviation() const {
  std::vector<double> values;
  for (int64_t c = 0; c < channels_; ++c) {
    const auto at = static_cast<size_t>(c);
    const double mean = average(sum_[at]);
    values.push_back(std::sqrt(std::max(0.0, average(squares_[at]) - mean * mean)) / 255);
  }
  return values;
}

DatasetStatistics statistics_of(const Dataset& data, int64_t limit, ThreadPool& pool,
                                const WalkHooks& hooks) {
  DatasetStatistics found;
  found.looked_at = limit > 0 ? std::min(limit, data.size()) : data.size();
  const auto at = [&](int64_t i) {
    return static_cast<int64_t>(static_cast<double>(i) * static_cast<double>(data.size()) /
                                static_cast<double>(found.looked_at));
  };
  in_order<ImageSums>(
      found.looked_at, pool, hooks, [&](int64_t i) { return sums_of(data.load(at(i), 0)); },
      [&](int64_t, ImageSums& sums, const std::optional<Error>& error) {
        if (error)
          ++found.bad;
        else
          found.images.add(sums);
      });
  return found;
}

std::vector<int64_t> sample_of(const Dataset& data, int64_t count, uint64_t seed, const std::string& only) {
  int32_t wanted = -1;
  if (!only.empty()) {
    const auto& classes = data.classes();
    const auto found = std::find(classes.begin(), classes.end(), only);
    if (found == classes.end()) {
      const std::string near = nearest_name(only, classes);
      throw Error(
          ErrorKind::kUsage, strf("the data has no class %s", quoted(only).c_str()),
          near.empty() ? "vitrail data stats lists them" : strf("did you mean %s?", quoted(near).c_str()));
    }
    wanted = static_cast<int32_t>(found - classes.begin());
  }
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto labels = data.labels(i);
    if (wanted >= 0 && std::find(labels.begin(), labels.end(), wanted) == labels.end()) continue;
    drawn.emplace_back(counter_hash(counter_hash(name_key("show"), seed), static_cast<uint64_t>(i)), i);
  }
  const auto kept = static_cast<std::ptrdiff_t>(std::min(static_cast<size_t>(count), drawn.size()));
  std::partial_sort(drawn.begin(), drawn.begin() + kept, drawn.end());
  std::vector<int64_t> indices;
  for (std::ptrdiff_t i = 0; i < kept; ++i) indices.push_back(drawn[static_cast<size_t>(i)].second);
  const auto first_label = [&](int64_t i) { return data.labels(i).empty() ? INT32_MAX : data.labels(i)[0]; };
  std::sort(indices.begin(), indices.end(), [&](int64_t a, int64_t b) {
    return std::pair(first_label(a), a) < std::pair(first_label(b), b);
  });
  return indices;
}

}  // namespace vitrail
