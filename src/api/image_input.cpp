#include "api/image_input.h"

#include <algorithm>
#include <cstring>

#include "api/call_errors.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "data/decode.h"
#include "data/image_list.h"
#include "data/preprocess.h"

namespace vitrail {

ImageView::ImageView(std::string path) : path_(std::move(path)) {}
ImageView::ImageView(const char* path) : path_(path ? path : "") {}

ImageView ImageView::file(std::string path) {
  return {std::move(path)};
}

ImageView ImageView::encoded(std::span<const uint8_t> bytes) {
  ImageView view;
  view.form_ = Form::kEncoded;
  view.bytes_ = bytes;
  return view;
}

ImageView ImageView::pixels(std::span<const uint8_t> bytes, int64_t height, int64_t width, int64_t channels,
                            int64_t row_stride) {
  ImageView view;
  view.form_ = Form::kPixels;
  view.bytes_ = bytes;
  view.height_ = height;
  view.width_ = width;
  view.channels_ = channels;
  view.row_stride_ = row_stride;
  return view;
}

ImageView ImageView::tensor(std::span<const float> values) {
  ImageView view;
  view.form_ = Form::kTensor;
  view.values_ = values;
  return view;
}

std::vector<ImageView> ImageView::tensors(std::span<const float> values, int64_t count) {
  const size_t given = values.data() ? values.size() : 0, images = static_cast<size_t>(count);
  VT_REQUIRE(count >= 1 && given > 0 && given % images == 0, ErrorKind::kUsage,
             "expected the floats of %lld images, found %zu", static_cast<long long>(count), given);
  const size_t each = given / images;
  return with_api_errors([&] {
    std::vector<ImageView> views;
    views.reserve(images);
    for (size_t i = 0; i < images; ++i) views.push_back(tensor(values.subspan(i * each, each)));
    return views;
  });
}

namespace {

// Returns the distance of two rows; throws Error(kUsage) when size, stride and bytes do not fit together.
// Sides are bounded first, so that no multiplication overflows.
int64_t checked_stride(const ImageView& view) {
  const DecodeLimits limits;
  const auto height = static_cast<long long>(view.height()), width = static_cast<long long>(view.width()),
             channels = static_cast<long long>(view.channels());
  VT_REQUIRE(height >= 1 && width >= 1 && height <= limits.max_side && width <= limits.max_side &&
                 height * width <= limits.max_pixels,
             ErrorKind::kUsage,
             "an image of %lld x %lld pixels: sides are 1 to %lld, and %lld pixels at most", width, height,
             static_cast<long long>(limits.max_side), static_cast<long long>(limits.max_pixels));
  VT_REQUIRE(channels == 1 || channels == 3 || channels == 4, ErrorKind::kUsage,
             "an image of %lld channels: expected 1 (grey), 3 (RGB) or 4 (RGBA)", channels);
  const int64_t row = width * channels, stride = view.row_stride() == 0 ? row : view.row_stride();
  VT_REQUIRE(stride >= row && stride <= (int64_t{1} << 40), ErrorKind::kUsage,
             "a row stride of %lld bytes: a row of %lld pixels in %lld channels has %lld",
             static_cast<long long>(stride), width, channels, static_cast<long long>(row));
  const int64_t needed = stride * (height - 1) + row;
  VT_REQUIRE(view.bytes().data() != nullptr && std::ssize(view.bytes()) >= needed, ErrorKind::kUsage,
             "%zu bytes given for an image of %lld x %lld pixels in %lld channels: it has %lld",
             view.bytes().data() ? view.bytes().size() : size_t{0}, width, height, channels,
             static_cast<long long>(needed));
  return stride;
}

// Converts grey and RGBA to RGB, as the decoders do.
Image image_of_pixels(const ImageView& view) {
  const int64_t stride = checked_stride(view), channels = view.channels();
  Image image = Image::blank(view.height(), view.width(), 3);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = view.bytes().data() + y * stride;
    uint8_t* to = image.row(y);
    if (channels == 3) {
      std::memcpy(to, from, static_cast<size_t>(3 * image.width));
      continue;
    }
    for (int64_t x = 0; x < image.width; ++x, from += channels, to += 3)
      for (int64_t c = 0; c < 3; ++c) to[c] = from[channels == 1 ? 0 : c];
  }
  return image;
}

Image decoded(const ImageView& view, bool upright) {
  if (view.form() == ImageView::Form::kPixels) return image_of_pixels(view);
  if (view.form() == ImageView::Form::kFile) {
    VT_REQUIRE(!view.path().empty(), ErrorKind::kUsage, "expected the path of an image, found none");
    require_path(view.path());
    std::string note;
    return load_listed_image(view.path(), upright, note);
  }
  const DecodeLimits limits;
  VT_REQUIRE(view.bytes().data() != nullptr && !view.bytes().empty(), ErrorKind::kUsage,
             "expected the bytes of a JPEG, PNG or WebP file, found none");
  VT_REQUIRE(std::ssize(view.bytes()) <= limits.max_file_bytes, ErrorKind::kData,
             "an encoded image of %zu bytes: at most %lld", view.bytes().size(),
             static_cast<long long>(limits.max_file_bytes));
  DecodeReport report;
  Image image = decode_image(view.bytes(), limits, &report);
  return upright ? turned_upright(std::move(image), report.exif_orientation) : image;
}

// Writes the input of a model [C Y X] for one image.
void fill_input(const ImageView& view, const ModelCard& card, bool upright, std::span<float> target) {
  if (view.form() != ImageView::Form::kTensor)
    return preprocess(decoded(view, upright), card.preprocess, target);
  const std::span<const float> values = view.values();
  VT_REQUIRE(values.data() != nullptr && values.size() == target.size(), ErrorKind::kUsage,
             "%zu floats given; an image of this model has %zu: %lld x %lld x %lld",
             values.data() ? values.size() : size_t{0}, target.size(),
             static_cast<long long>(card.config.channels), static_cast<long long>(card.config.image_height),
             static_cast<long long>(card.config.image_width));
  std::copy(values.begin(), values.end(), target.begin());
}

}  // namespace

std::vector<float> inputs_of(std::span<const ImageView> images, size_t first, size_t count,
                             const ModelCard& card, bool upright, int threads) {
  const VitConfig& config = card.config;
  const auto elems = static_cast<size_t>(config.channels * config.image_height * config.image_width);
  std::vector<float> inputs(count * elems);
  const auto fill = [&](int64_t i, int) {
    const auto at = static_cast<size_t>(i);
    naming_image(first + at, images.size(), [&] {
      fill_input(images[first + at], card, upright, std::span(inputs).subspan(at * elems, elems));
    });
  };
  const auto images_now = static_cast<int64_t>(count);
  ThreadPool(static_cast<int>(std::clamp<int64_t>(images_now, 1, threads))).run(images_now, fill);
  return inputs;
}

}  // namespace vitrail
