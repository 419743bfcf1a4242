#include "data/image_form.h"

#include <algorithm>

#include "data/preprocess.h"

namespace vitrail {

namespace {

size_t image_bytes(const LoaderSettings& s) {
  return static_cast<size_t>(s.channels * s.preprocess.height * s.preprocess.width);
}

// Returns why recipes cannot express these settings; empty: they can.
std::string why_floats(const LoaderSettings& s, const ImageLimits& limits) {
  if (!limits.needs_floats.empty()) return limits.needs_floats;
  if (s.augment.erase <= 0) return {};
  if (s.augment.erase_mode != EraseMode::kConst)
    return strf("augment.erase_mode is %s", enum_name(s.augment.erase_mode));
  if (s.augment.erase_count > ImageRecipe::kMostErased)
    return strf("augment.erase_count is %lld, more than %d", static_cast<long long>(s.augment.erase_count),
                ImageRecipe::kMostErased);
  return {};
}

// Returns why the dataset cannot, or by default should not, be stored on the device.
std::string why_not_stored(const LoaderSettings& s, const Dataset& dataset, const ImageLimits& limits) {
  const std::optional<PixelShape> shape = dataset.pixel_shape();
  if (!shape) return "they are not stored as pixels of one size";
  if (shape->height != s.preprocess.height || shape->width != s.preprocess.width)
    return "they have another size than the model's";
  if (!Augmenter(s.augment, s.preprocess, s.channels, s.seed).only_moves())
    return "the CPU varies each of them";
  if (s.loader.on_error == OnError::kSkip) return "loader.on_error is skip";
  if (dataset.size() > INT32_MAX) return "there are more than 2^31";
  const size_t allowed = s.loader.on_device == OnDevice::kDataset ? SIZE_MAX : limits.stored_bytes;
  if (static_cast<size_t>(dataset.size()) > allowed / image_bytes(s))
    return strf("they take %.1f GiB",
                static_cast<double>(dataset.size()) * static_cast<double>(image_bytes(s)) / (1 << 30));
  return {};
}

}  // namespace

ImageChoice choose_images(const LoaderSettings& s, const Dataset& dataset, const ImageLimits& limits) {
  const OnDevice wanted = s.loader.on_device;
  if (wanted == OnDevice::kOff || (wanted == OnDevice::kAuto && !limits.own_memory)) return {};
  if (const std::string why = why_floats(s, limits); !why.empty())
    return {ImageForm::kFloats, "normalised on the CPU, since " + why};
  if (wanted == OnDevice::kImages) return {ImageForm::kPixels, "made on the device from 8-bit pixels"};
  if (const std::string why = why_not_stored(s, dataset, limits); !why.empty())
    return {ImageForm::kPixels, "made on the device from 8-bit pixels; not all kept there, since " + why};
  return {ImageForm::kStored, strf("made on the device from 8-bit pixels, all %lld of them kept there",
                                   static_cast<long long>(dataset.size()))};
}

void read_stored_pixels(const LoaderSettings& s, const Dataset& dataset, const TakePixels& take) {
  const size_t each = image_bytes(s), at_once = std::max<size_t>(1, (size_t{16} << 20) / each) * each;
  std::vector<uint8_t> pixels;
  size_t offset = 0;
  const size_t all = each * static_cast<size_t>(dataset.size());
  const bool given = s.receives && s.relay;
  for (; given && offset < all; offset += pixels.size()) {
    pixels.resize(std::min(at_once, all - offset));
    s.relay->pass(std::as_writable_bytes(std::span(pixels)));
    take(offset, pixels);
  }
  if (given) return;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Image image = with_channels(dataset.load(i, 0), s.channels);
    VT_REQUIRE(image.pixels.size() == each, ErrorKind::kData, "%s has another size than the others",
               dataset.sample_name(i).c_str());
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    if (pixels.size() < at_once && i + 1 < dataset.size()) continue;
    if (s.relay) s.relay->pass(std::as_writable_bytes(std::span(pixels)));
    take(offset, pixels);
    offset += pixels.size();
    pixels.clear();
  }
}

std::vector<float> image_levels(const LoaderSettings& s) {
  std::vector<float> levels;
  for (const LevelTable& table : level_tables(s.preprocess, s.channels))
    levels.insert(levels.end(), table.begin(), table.end());
  return levels;
}

}  // namespace vitrail
