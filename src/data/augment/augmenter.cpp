#include "data/augment/augmenter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "data/augment/colour.h"
#include "data/augment/pixel_ops.h"
#include "data/augment/windows.h"

namespace vitrail {
namespace {

// A single strength stands for brightness, contrast and saturation.
std::vector<double> jitter_strengths(const std::vector<double>& given) {
  return given.size() == 1 ? std::vector<double>(3, given[0]) : given;
}

Interpolation fixed_interpolation(AugmentInterpolation wanted, Interpolation of_model) {
  switch (wanted) {
    case AugmentInterpolation::kNearest:
      return Interpolation::kNearest;
    case AugmentInterpolation::kBilinear:
      return Interpolation::kBilinear;
    case AugmentInterpolation::kBicubic:
      return Interpolation::kBicubic;
    default:
      return of_model;
  }
}

// Affine maps support no wider kernel than bicubic.
Interpolation for_affine(Interpolation interpolation) {
  const bool known = interpolation == Interpolation::kNearest || interpolation == Interpolation::kBilinear;
  return known ? interpolation : Interpolation::kBicubic;
}

PolicyLook look_of(const AugmentConfig& config, const PreprocessConfig& preprocess) {
  PolicyLook look;
  look.random_interpolation = config.interpolation == AugmentInterpolation::kRandom;
  look.sampling.interpolation =
      for_affine(fixed_interpolation(config.interpolation, preprocess.interpolation));
  for (size_t c = 0; c < look.sampling.fill.size(); ++c) look.sampling.fill[c] = mean_level(preprocess, c);
  return look;
}

// Returns the smallest size of the image's shape that covers the target; the other side is rounded down.
Size covering(const Image& image, Size target) {
  if (target.height * image.width >= target.width * image.height)
    return {target.height, target.height * image.width / image.height};
  return {target.width * image.height / image.width, target.width};
}

}  // namespace

Augmenter::Augmenter(const AugmentConfig& config, const PreprocessConfig& preprocess, int64_t channels,
                     uint64_t seed)
    : config_(config),
      preprocess_(preprocess),
      seed_(seed),
      policy_(parse_policy(config.policy)),
      levels_(level_tables(preprocess, channels)) {
  validate(config);
  config_.colour_jitter = jitter_strengths(config.colour_jitter);
  look_ = look_of(config_, preprocess_);
}

bool Augmenter::is_drawn(double probability, int64_t epoch, int64_t position, const char* op) const {
  return probability > 0 && draw(epoch, position, op).chance(probability);
}

// Returns whether an image of the model's size stays unchanged when there is no random crop.
bool Augmenter::keeps_target_size() const {
  const bool stretches = preprocess_.mode == ResizeMode::kStretch;
  const ResizeSides sides = stretches ? crop_sides(preprocess_) : resize_sides(preprocess_);
  return sides.height == preprocess_.height && sides.width == preprocess_.width;
}

Draw Augmenter::draw(int64_t epoch, int64_t position, const char* op) const {
  return Draw(seed_, epoch, position, op);
}

int64_t Augmenter::least_side(int64_t epoch, int64_t position) const {
  const Size target{preprocess_.height, preprocess_.width};
  if (config_.crop == CropKind::kResized)
    return resized_crop_least_side(target, config_, draw(epoch, position, "crop"));
  if (config_.crop == CropKind::kPad) return std::max(target.height, target.width);
  if (preprocess_.resampler != Resampler::kPillow || preprocess_.mode == ResizeMode::kNone) return 0;
  const ResizeSides sides = resize_sides(preprocess_);
  return std::max({sides.height, sides.width, target.height, target.width});
}

Interpolation Augmenter::crop_interpolation(Draw& draw) const {
  if (config_.interpolation == AugmentInterpolation::kRandom)
    return draw.chance(0.5) ? Interpolation::kBilinear : Interpolation::kBicubic;
  return fixed_interpolation(config_.interpolation, preprocess_.interpolation);
}

Image Augmenter::cropped(Image image, int64_t epoch, int64_t position) const {
  const Size target{preprocess_.height, preprocess_.width};
  Draw drawn = draw(epoch, position, "crop");
  if (config_.crop == CropKind::kResized) {
    const Window window = resized_crop({image.height, image.width}, config_, drawn);
    return resize(crop_window(image, window), target, crop_interpolation(drawn));
  }
  if (config_.crop == CropKind::kPad) {
    const Size size = covering(image, target);
    if (size != Size{image.height, image.width}) image = resize(image, size, crop_interpolation(drawn));
    const Window window = padded_crop(size, target, config_.pad, drawn);
    return crop_window(image, window, config_.pad_mode == PadMode::kReflect);
  }
  if (keeps_target_size() && target == Size{image.height, image.width}) return image;
  return crop_for_display(image, preprocess_);
}

Image Augmenter::vary(Image image, int64_t epoch, int64_t position) const {
  VT_CHECK(image.channels == std::ssize(levels_), "%lld channels for a model of %zu",
           static_cast<long long>(image.channels), levels_.size());
  const auto happens = [&](double probability, const char* op) {
    return is_drawn(probability, epoch, position, op);
  };
  image = cropped(std::move(image), epoch, position);
  if (happens(config_.hflip, "hflip")) flip_horizontal(image);
  if (happens(config_.vflip, "vflip")) flip_vertical(image);
  if (policy_.kind != Policy::Kind::kNone) {
    Draw drawn = draw(epoch, position, "policy");
    apply_policy(policy_, look_, drawn, image);
  }
  if (!config_.colour_jitter.empty() && happens(config_.colour_jitter_prob, "jitter?")) {
    Draw drawn = draw(epoch, position, "jitter");
    colour_jitter(image, config_.colour_jitter, drawn);
  }
  if (happens(config_.grayscale, "grayscale")) make_grey(image);
  if (happens(config_.blur, "blur?")) {
    Draw drawn = draw(epoch, position, "blur");
    gaussian_blur(image, drawn.uniform(config_.blur_sigma[0], config_.blur_sigma[1]));
  }
  return image;
}

void Augmenter::fill(Image image, int64_t epoch, int64_t position, std::span<float> target) const {
  const Image varied = vary(std::move(image), epoch, position);
  const int64_t plane = varied.height * varied.width, channels = varied.channels;
  VT_CHECK(static_cast<int64_t>(target.size()) == plane * channels, "%zu values", target.size());
  for (int64_t c = 0; c < channels; ++c) {
    const LevelTable& table = levels_[static_cast<size_t>(c)];
    const uint8_t* from = varied.pixels.data() + c;
    float* to = target.data() + c * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] = table[from[i * channels]];
  }
  if (config_.erase > 0) {
    Draw drawn = draw(epoch, position, "erase");
    random_erase(target, {varied.height, varied.width}, config_, drawn);
  }
}

bool Augmenter::only_moves() const {
  const bool moves =
      config_.crop == CropKind::kPad || (config_.crop == CropKind::kNone && keeps_target_size());
  return moves && policy_.kind == Policy::Kind::kNone && config_.colour_jitter.empty() &&
         config_.grayscale == 0 && config_.blur == 0;
}

void Augmenter::describe(int64_t epoch, int64_t position, ImageRecipe& recipe) const {
  const Size target{preprocess_.height, preprocess_.width};
  if (config_.crop == CropKind::kPad) {
    Draw drawn = draw(epoch, position, "crop");
    const Window window = padded_crop(target, target, config_.pad, drawn);
    recipe.top = static_cast<int32_t>(window.top);
    recipe.left = static_cast<int32_t>(window.left);
    recipe.mirror = config_.pad_mode == PadMode::kReflect;
  }
  recipe.flip_columns = is_drawn(config_.hflip, epoch, position, "hflip");
  recipe.flip_rows = is_drawn(config_.vflip, epoch, position, "vflip");
  describe_erased(epoch, position, recipe);
}

void Augmenter::describe_erased(int64_t epoch, int64_t position, ImageRecipe& recipe) const {
  if (config_.erase <= 0) return;
  VT_CHECK(config_.erase_mode == EraseMode::kConst && config_.erase_count <= ImageRecipe::kMostErased,
           "%lld boxes filled with %s", static_cast<long long>(config_.erase_count),
           enum_name(config_.erase_mode));
  Draw drawn = draw(epoch, position, "erase");
  draw_erased({preprocess_.height, preprocess_.width}, config_, drawn,
              [&](const Window& box) { recipe.box[recipe.erased++] = box_of(box); });
}

Image Augmenter::prepare(Image image, int64_t epoch, int64_t position, ImageRecipe& recipe) const {
  if (only_moves() && image.height == preprocess_.height && image.width == preprocess_.width) {
    describe(epoch, position, recipe);
    return image;
  }
  image = vary(std::move(image), epoch, position);
  describe_erased(epoch, position, recipe);
  return image;
}

Image with_channels(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  VT_REQUIRE((image.channels == 1 || image.channels == 3) && (channels == 1 || channels == 3),
             ErrorKind::kData, "the image has %lld channels, the model takes %lld: expected 1 or 3",
             static_cast<long long>(image.channels), static_cast<long long>(channels));
  if (channels == 1) return to_luma(image);
  Image colour = Image::blank(image.height, image.width, 3);
  for (size_t i = 0; i < colour.pixels.size(); ++i) colour.pixels[i] = image.pixels[i / 3];
  return colour;
}

}  // namespace vitrail
