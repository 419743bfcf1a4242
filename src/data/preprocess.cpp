#include "data/preprocess.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "data/preprocess_layout.h"

namespace vitrail {
namespace {

constexpr int64_t kMaxSide = 65536;

double mean_of(const PreprocessConfig& config, size_t channel) {
  return config.mean[std::min(channel, config.mean.size() - 1)];
}

uint8_t as_level(double value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
}

// What surrounds an image that is smaller than the crop.
uint8_t margin_level(const PreprocessConfig& config, size_t channel) {
  if (config.mode == ResizeMode::kSquare) return as_level(mean_of(config, channel) * 255);
  const bool mean = config.mode == ResizeMode::kLongerSide || config.mode == ResizeMode::kCorner;
  return mean ? mean_level(config, channel) : 0;
}

struct Normaliser {
  float mean, std;
  // The divisions are those of torch's ToTensor and Normalize, so that results are bit-equal.
  float operator()(float pixel) const { return (pixel / 255.0f - mean) / std; }
};

std::vector<Normaliser> normalisers(const PreprocessConfig& config, int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  const auto fits = [&](const std::vector<double>& v) { return v.size() == 1 || v.size() == count; };
  VT_REQUIRE(fits(config.mean) && fits(config.std), ErrorKind::kConfig,
             "mean has %zu values and std %zu: expected 1 or %zu, one per channel", config.mean.size(),
             config.std.size(), count);
  std::vector<Normaliser> result;
  for (size_t c = 0; c < count; ++c) {
    const double mean = config.mean[config.mean.size() == 1 ? 0 : c],
                 std = config.std[config.std.size() == 1 ? 0 : c];
    VT_REQUIRE(std::isfinite(mean) && std::isfinite(std) && static_cast<float>(std) != 0.0f,
               ErrorKind::kConfig, "mean %g and std %g of channel %zu: expected finite numbers, std not 0",
               mean, std, c);
    result.push_back({static_cast<float>(mean), static_cast<float>(std)});
  }
  return result;
}

// Writes the visible part of every plane; `value(channel, sample)` is the normalised sample.
template <typename Samples, typename Value>
void write_planes(const Samples& part, const ImageLayout& layout, const PreprocessConfig& config,
                  Value&& value, std::span<float> target) {
  const int64_t channels = part.channels;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < part.height; ++y) {
      const auto* from = part.pixels.data() + y * part.width * channels + c;
      float* to = target.data() + (c * config.height + layout.rows.to + y) * config.width + layout.columns.to;
      for (int64_t x = 0; x < part.width; ++x) to[x] = value(static_cast<size_t>(c), from[x * channels]);
    }
}

Image resample(const Image& image, const PreprocessConfig& config, const ImageLayout& layout) {
  if (config.resampler == Resampler::kTfArea) return resize_tf_area(image, layout.size, layout.window());
  return resize(image, layout.size, layout.window(), config.interpolation);
}

void fill_target(const Image& image, const PreprocessConfig& config, int64_t channels,
                 std::span<float> target) {
  const ImageLayout layout = lay_out(image, config);
  const auto normalise = normalisers(config, channels);
  const auto plane = static_cast<ptrdiff_t>(config.height * config.width);
  const ResizeSides crop = crop_sides(config);
  std::fill(target.begin(), target.end(), 0.0f);
  for (size_t c = 0; c < normalise.size() && config.mode != ResizeMode::kCorner; ++c)
    for (int64_t y = 0; y < crop.height; ++y)
      std::fill_n(target.begin() + static_cast<ptrdiff_t>(c) * plane + y * config.width, crop.width,
                  normalise[c](margin_level(config, c)));
  if (config.resampler == Resampler::kTf) {
    const FloatImage part = resize_tf_bilinear(image, layout.size, layout.window());
    write_planes(
        part, layout, config, [&](size_t c, float pixel) { return normalise[c](pixel); }, target);
    return;
  }
  const std::vector<LevelTable> table = level_tables(config, channels);
  const Image part = resample(image, config, layout);
  write_planes(
      part, layout, config, [&](size_t c, uint8_t level) { return table[c][level]; }, target);
}

// Returns the input before an image is laid upon it.
Image background(const PreprocessConfig& config, int64_t channels) {
  Image image = Image::blank(config.height, config.width, channels);
  const ResizeSides crop = crop_sides(config);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        image.row(y)[x * channels + c] = y < crop.height && x < crop.width
                                             ? margin_level(config, static_cast<size_t>(c))
                                             : mean_level(config, static_cast<size_t>(c));
  return image;
}

}  // namespace

void require_possible(const PreprocessConfig& config) {
  const auto in_range = [](int64_t side, int64_t least) { return side >= least && side <= kMaxSide; };
  VT_REQUIRE(in_range(config.height, 1) && in_range(config.width, 1), ErrorKind::kConfig,
             "preprocessing to %lld x %lld pixels: sides must be in 1..%lld",
             static_cast<long long>(config.width), static_cast<long long>(config.height),
             static_cast<long long>(kMaxSide));
  VT_REQUIRE(in_range(config.resize, 0) && in_range(config.resize_longer, 0), ErrorKind::kConfig,
             "preprocessing with resize %lld and resize_longer %lld: expected 0..%lld",
             static_cast<long long>(config.resize), static_cast<long long>(config.resize_longer),
             static_cast<long long>(kMaxSide));
  VT_REQUIRE(in_range(config.pad_rows, 0) && config.pad_rows < config.height &&
                 in_range(config.pad_columns, 0) && config.pad_columns < config.width,
             ErrorKind::kConfig, "preprocessing pads %lld rows and %lld columns of %lld x %lld pixels",
             static_cast<long long>(config.pad_rows), static_cast<long long>(config.pad_columns),
             static_cast<long long>(config.height), static_cast<long long>(config.width));
  if (config.resampler == Resampler::kTf && config.interpolation != Interpolation::kBilinear)
    throw Error(
        ErrorKind::kConfig,
        strf("resampler tf knows interpolation bilinear only, found %s", enum_name(config.interpolation)),
        "preprocess.interpolation=bilinear, or preprocess.resampler=pillow");
}

uint8_t mean_level(const PreprocessConfig& config, size_t channel) {
  return as_level(std::nearbyint(255 * mean_of(config, channel)));
}

Image to_luma(const Image& image) {
  Image grey = Image::blank(image.height, image.width, 1);
  const uint8_t* rgb = image.pixels.data();
  for (uint8_t& luma : grey.pixels) {
    luma = static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    rgb += 3;
  }
  return grey;
}

std::vector<LevelTable> level_tables(const PreprocessConfig& config, int64_t channels) {
  std::vector<LevelTable> tables;
  for (const Normaliser& normalise : normalisers(config, channels)) {
    LevelTable& table = tables.emplace_back();
    for (size_t level = 0; level < table.size(); ++level) table[level] = normalise(static_cast<float>(level));
  }
  return tables;
}

void preprocess(const Image& image, const PreprocessConfig& config, std::span<float> target) {
  require_possible(config);
  const int64_t plane = config.height * config.width;
  const int64_t channels = static_cast<int64_t>(target.size()) / plane;
  VT_CHECK(channels * plane == static_cast<int64_t>(target.size()), "%zu values for planes of %lld",
           target.size(), static_cast<long long>(plane));
  VT_REQUIRE(channels == 1 || channels == 3, ErrorKind::kConfig,
             "the model takes %lld channels: an image can fill 1 (grey) or 3 (RGB)",
             static_cast<long long>(channels));
  VT_REQUIRE(image.channels == 3 || image.channels == channels, ErrorKind::kData,
             "the image has %lld channels, the model takes %lld", static_cast<long long>(image.channels),
             static_cast<long long>(channels));
  const Image luma = image.channels == channels ? Image{} : to_luma(image);
  const Image& seen = image.channels == channels ? image : luma;
  const std::optional<Image> first = first_step(seen, config);
  fill_target(first ? *first : seen, config, channels, target);
}

Image crop_for_display(const Image& whole, const PreprocessConfig& config) {
  require_possible(config);
  const std::optional<Image> first = first_step(whole, config);
  const Image& image = first ? *first : whole;
  const ImageLayout layout = lay_out(image, config);
  Image shown = background(config, image.channels);
  const auto paste = [&](const auto& part) {
    for (int64_t y = 0; y < part.height; ++y)
      std::transform(part.pixels.data() + y * part.width * part.channels,
                     part.pixels.data() + (y + 1) * part.width * part.channels,
                     shown.row(layout.rows.to + y) + layout.columns.to * image.channels, [](auto pixel) {
                       if constexpr (std::is_integral_v<decltype(pixel)>) return pixel;
                       return static_cast<uint8_t>(std::lround(pixel));
                     });
  };
  if (config.resampler == Resampler::kTf)
    paste(resize_tf_bilinear(image, layout.size, layout.window()));
  else
    paste(resample(image, config, layout));
  return shown;
}

}  // namespace vitrail
