#include "data/preprocess_layout.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {
namespace {

int64_t down(double x) {
  return static_cast<int64_t>(x);
}

Size shorter_side(Size image, int64_t resize) {
  if (image.width <= image.height) return {resize * image.height / image.width, resize};
  return {resize, resize * image.width / image.height};
}

// Returns the smallest size of the image's shape that covers the sides, or the largest within them.
Size in_proportion(Size image, ResizeSides sides, bool within) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double rows = height / static_cast<double>(sides.height),
               columns = width / static_cast<double>(sides.width);
  const double ratio = within ? std::max(rows, columns) : std::min(rows, columns);
  return {std::max<int64_t>(round_half_even(height / ratio), 1),
          std::max<int64_t>(round_half_even(width / ratio), 1)};
}

Size tf_shorter_side(Size image, int64_t resize) {
  const float factor = static_cast<float>(resize) / static_cast<float>(std::min(image.height, image.width));
  const auto side = [&](int64_t in) { return round_half_even(static_cast<float>(in) * factor); };
  return {side(image.height), side(image.width)};
}

Size covering(Size image, const PreprocessConfig& config) {
  const ResizeSides sides = resize_sides(config);
  if (is_tf(config)) return tf_shorter_side(image, std::min(sides.height, sides.width));
  return sides.height == sides.width ? shorter_side(image, sides.height) : in_proportion(image, sides, false);
}

Size shorter_most(Size image, int64_t resize, int64_t most) {
  const auto shorter = static_cast<double>(std::min(image.height, image.width)),
             longer = static_cast<double>(std::max(image.height, image.width));
  double exact = static_cast<double>(resize);
  if (longer / shorter * exact > static_cast<double>(most))
    exact = static_cast<double>(most) * shorter / longer;
  const int64_t side = std::max<int64_t>(round_half_even(exact), 1),
                other = std::max<int64_t>(down(exact * longer / shorter), 1);
  if (side == std::min(image.height, image.width)) return image;
  return image.width < image.height ? Size{other, side} : Size{side, other};
}

Size within(Size image, ResizeSides sides) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double share =
      std::min(static_cast<double>(sides.height) / height, static_cast<double>(sides.width) / width);
  return {std::max<int64_t>(down(height * share), 1), std::max<int64_t>(down(width * share), 1)};
}

// BridgeTower's and ViLT's rule, in the order of their arithmetic.
Size shorter_down(Size image, int64_t resize, int64_t multiple) {
  const double scale = static_cast<double>(resize) / static_cast<double>(std::min(image.height, image.width));
  double height = static_cast<double>(resize), width = height;
  (image.height < image.width ? width : height) =
      scale * static_cast<double>(std::max(image.height, image.width));
  const auto most = static_cast<double>(down(1333.0 / 800.0 * static_cast<double>(resize)));
  if (const double longer = std::max(height, width); longer > most) {
    height *= most / longer;
    width *= most / longer;
  }
  const auto side = [&](double x) { return std::max<int64_t>(down(x + 0.5) / multiple * multiple, 1); };
  return {side(height), side(width)};
}

Size shorter_up(Size image, int64_t resize, int64_t multiple) {
  const Size size = shorter_side(image, resize);
  return {round_up(size.height, multiple), round_up(size.width, multiple)};
}

double share_of_longer(Size image, int64_t resize) {
  return static_cast<double>(resize) / static_cast<double>(std::max(image.height, image.width));
}

Size squared(Size image, int64_t resize, int64_t least) {
  const double share = share_of_longer(image, resize);
  const auto side = [&](int64_t in) {
    return std::max(round_half_even(static_cast<double>(in) * share), std::max<int64_t>(least, 1));
  };
  return {side(image.height), side(image.width)};
}

Size cornered(Size image, int64_t resize) {
  const double share = share_of_longer(image, resize);
  const auto side = [&](int64_t in) {
    return std::max<int64_t>(down(static_cast<double>(in) * share + 0.5), 1);
  };
  return {side(image.height), side(image.width)};
}

// Donut's second resize, which follows that of the shorter side.
Size thumbnail(Size image, ResizeSides crop) {
  Size size{std::min(image.height, crop.height), std::min(image.width, crop.width)};
  if (size == image) return size;
  if (image.height > image.width) size.width = image.width * size.height / image.height;
  if (image.width > image.height) size.height = image.height * size.width / image.width;
  return {std::max<int64_t>(size.height, 1), std::max<int64_t>(size.width, 1)};
}

Size resized(Size image, const PreprocessConfig& config) {
  const ResizeSides crop = crop_sides(config), sides = resize_sides(config);
  const int64_t resize = config.resize > 0 ? config.resize : std::min(crop.height, crop.width),
                other = std::max<int64_t>(config.resize_longer, 1);
  switch (config.mode) {
    case ResizeMode::kStretch:
    case ResizeMode::kCropStretch:
      return {crop.height, crop.width};
    case ResizeMode::kNone:
      return image;
    case ResizeMode::kStretchCrop:
      return {sides.height, sides.width};
    case ResizeMode::kLongerSide:
      return in_proportion(image, sides, true);
    case ResizeMode::kShorterSide:
      return covering(image, config);
    case ResizeMode::kShorterMost:
      return shorter_most(image, sides.height, sides.width);
    case ResizeMode::kWithin:
      return within(image, sides);
    case ResizeMode::kShorterDown:
      return shorter_down(image, resize, other);
    case ResizeMode::kShorterUp:
      return shorter_up(image, resize, other);
    case ResizeMode::kSquare:
      return squared(image, resize, other);
    case ResizeMode::kCorner:
      return cornered(image, resize);
    case ResizeMode::kThumbnail:
      return thumbnail(image, crop);
  }
  return image;
}

// `up`: transformers rounds down where the crop starts, and so up where a smaller image does.
CropSpan centre(int64_t resized, int64_t crop, bool round_down, bool up) {
  if (resized < crop) return {0, (crop - resized + (up ? 1 : 0)) / 2, resized};
  const int64_t margin = resized - crop;
  return {round_down ? margin / 2 : round_half_even(static_cast<double>(margin) / 2.0), 0, crop};
}

// Returns the centre of the image that kCropStretch takes, a share of the shorter side each way.
Window centre_window(const Image& image, const PreprocessConfig& config) {
  const ResizeSides crop = crop_sides(config), whole = resize_sides(config);
  const auto shorter = static_cast<double>(std::min(image.height, image.width));
  const auto part = [&](int64_t of, int64_t all, int64_t most) {
    const int64_t side = down(static_cast<double>(of) / static_cast<double>(all) * shorter);
    return std::clamp<int64_t>(side, 1, most);
  };
  const int64_t rows = part(crop.height, whole.height, image.height),
                columns = part(crop.width, whole.width, image.width);
  return {(image.height - rows) / 2, (image.width - columns) / 2, rows, columns};
}

}  // namespace

ImageLayout lay_out(const Image& image, const PreprocessConfig& config) {
  VT_REQUIRE(image.height > 0 && image.width > 0, ErrorKind::kData, "the image has no pixels");
  const Size size = resized({image.height, image.width}, config);
  const bool up = !is_tf(config) && config.odd_margin == OddMargin::kDown, round_down = is_tf(config) || up;
  const ResizeSides crop = crop_sides(config);
  if (config.mode == ResizeMode::kCorner)
    return {size, {0, 0, std::min(size.height, crop.height)}, {0, 0, std::min(size.width, crop.width)}};
  return {size, centre(size.height, crop.height, round_down, up),
          centre(size.width, crop.width, round_down, up)};
}

std::optional<Image> first_step(const Image& image, const PreprocessConfig& config) {
  const Size size{image.height, image.width};
  if (image.height <= 0 || image.width <= 0) return std::nullopt;
  if (config.mode == ResizeMode::kCropStretch)
    return resize(image, size, centre_window(image, config), config.interpolation);
  if (config.mode != ResizeMode::kThumbnail) return std::nullopt;
  const ResizeSides crop = crop_sides(config);
  const Size first = shorter_side(size, std::min(crop.height, crop.width));
  const int64_t most = DecodeLimits().max_pixels;
  VT_REQUIRE(first.height <= most / first.width, ErrorKind::kData,
             "an image of %lld x %lld pixels is too long to be resized in two steps",
             static_cast<long long>(image.width), static_cast<long long>(image.height));
  return resize(image, first, config.interpolation);
}

}  // namespace vitrail
