// Synthetic images that can be learnt: each class has a smooth pattern of its own, each sample adds noise.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"

namespace vitrail::formats {

namespace {

constexpr int64_t kGrid = 4;       // random values of a pattern along each side
constexpr float kPattern = 60.0f;  // amplitudes, of 255
constexpr float kNoise = 60.0f;

struct SyntheticShape {
  int64_t channels, height, width, classes, count;
};

SyntheticShape parse_shape(const std::string& text) {
  std::array<int64_t, 5> numbers{};
  const char *at = text.data(), *end = at + text.size();
  bool good = true;
  for (size_t i = 0; good && i < numbers.size(); ++i) {
    const auto [next, code] = std::from_chars(at, end, numbers[i]);
    good = code == std::errc() && numbers[i] > 0 && (i == 4 ? next == end : next < end && *next == 'x');
    at = next + 1;
  }
  const SyntheticShape s{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  good = good && (s.channels == 1 || s.channels == 3) && s.height <= 8192 && s.width <= 8192 &&
         s.classes <= static_cast<int64_t>(ClassNames::kMost) && s.count <= int64_t{1} << 40;
  if (!good)
    throw Error(
        ErrorKind::kConfig,
        strf("expected synthetic:CxHxWxCLASSESxCOUNT with 1 or 3 channels and sides up to 8192, found "
             "synthetic:%s",
             text.c_str()),
        "synthetic:3x32x32x10x1000");
  return s;
}

class Synthetic : public Dataset {
 public:
  Synthetic(const SyntheticShape& shape, Part part)
      : shape_(shape), numbers_(static_cast<size_t>(shape.classes)) {
    // The validation part has a fifth as many samples again, after the training samples.
    const int64_t held_out = std::max<int64_t>(1, shape.count / 5);
    first_ = part == Part::kVal ? shape.count : 0;
    size_ = part == Part::kTrain ? shape.count : part == Part::kVal ? held_out : shape.count + held_out;
    classes_ = numbered_classes(numbers_.size());
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = static_cast<int32_t>(i);
  }

  std::string sample_name(int64_t index) const override {
    const int64_t number = first_ + index;
    return strf("synthetic#%lld", static_cast<long long>(number));
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return std::span(numbers_).subspan(static_cast<size_t>((first_ + index) % shape_.classes), 1);
  }

  Image load(int64_t index, int64_t) const override {
    Image image = Image::blank(shape_.height, shape_.width, shape_.channels);
    const uint64_t pattern = counter_hash(name_key("pattern"), static_cast<uint64_t>(labels(index)[0]));
    const uint64_t noise = counter_hash(name_key("noise"), static_cast<uint64_t>(first_ + index));
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x)
        for (int64_t c = 0; c < image.channels; ++c) {
          const auto at = static_cast<size_t>((y * image.width + x) * image.channels + c);
          const float value =
              128 + kPattern * pattern_at(pattern, y, x, c) + kNoise * counter_uniform(noise, at);
          image.pixels[at] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
        }
    return image;
  }

  std::optional<PixelShape> pixel_shape() const override {
    return PixelShape{shape_.height, shape_.width, shape_.channels};
  }

 private:
  float pattern_at(uint64_t key, int64_t y, int64_t x, int64_t channel) const {
    const auto along = [](int64_t at, int64_t extent) {
      return static_cast<float>(at * (kGrid - 1)) / static_cast<float>(std::max<int64_t>(extent - 1, 1));
    };
    const float row = along(y, shape_.height), column = along(x, shape_.width);
    const auto top = static_cast<int64_t>(row), left = static_cast<int64_t>(column);
    const auto knot = [&](int64_t r, int64_t c) {
      r = std::min(r, kGrid - 1);
      c = std::min(c, kGrid - 1);
      return counter_uniform(key, static_cast<uint64_t>((channel * kGrid + r) * kGrid + c));
    };
    const float down = row - static_cast<float>(top), right = column - static_cast<float>(left);
    const float upper = knot(top, left) * (1 - right) + knot(top, left + 1) * right;
    const float lower = knot(top + 1, left) * (1 - right) + knot(top + 1, left + 1) * right;
    return upper * (1 - down) + lower * down;
  }

  SyntheticShape shape_;
  std::vector<int32_t> numbers_;  // 0, 1, 2...: labels() points into it
  int64_t first_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> open_synthetic(const std::string& place, Part part) {
  return std::make_unique<Synthetic>(parse_shape(place), part);
}

}  // namespace vitrail::formats
