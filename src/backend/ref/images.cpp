// Reference loops of the op that makes images from pixels. They compute in f32, as the op's results are
// defined.
#include <algorithm>
#include <cstring>

#include "backend/ref/loops.h"
#include "image/image.h"
#include "image/image_recipe.h"
#include "ops/make_images.h"

namespace vitrail::ref {

namespace {

bool holds(const ImageBox& box, int64_t y, int64_t x) {
  return y >= box.top && y < box.top + box.height && x >= box.left && x < box.left + box.width;
}

class ImageMaker {
 public:
  explicit ImageMaker(const KernelArgs& args)
      : pixels_(args.ins[0].as<uint8_t>()),
        recipes_(static_cast<const ImageRecipe*>(args.ins[1].data())),
        levels_(args.ins[2].as<float>()),
        channels_(args.outs[0].shape()[1].local),
        height_(args.outs[0].shape()[2].local),
        width_(args.outs[0].shape()[3].local) {}

  // Writes one channel of an image, row by row.
  void plane(int64_t row, int64_t channel, float* target) const {
    const ImageRecipe& recipe = recipes_[row];
    for (int64_t y = 0; y < height_; ++y)
      for (int64_t x = 0; x < width_; ++x) *target++ = mixed(recipe, channel, y, x);
  }

 private:
  float mixed(const ImageRecipe& recipe, int64_t channel, int64_t y, int64_t x) const {
    const float own = value(recipe, channel, y, x);
    if (recipe.mix == ImageMix::kNone) return own;
    const float other = value(recipes_[recipe.partner], channel, y, x);
    if (recipe.mix == ImageMix::kCut) return holds(recipe.cut, y, x) ? other : own;
    return own * recipe.lambda + other * recipe.rest;
  }

  // The value of one pixel before it is mixed with the partner image.
  float value(const ImageRecipe& recipe, int64_t channel, int64_t y, int64_t x) const {
    if (recipe.source < 0) return 0;
    for (int32_t i = 0; i < recipe.erased; ++i)
      if (holds(recipe.box[i], y, x)) return 0;
    return levels_[channel * 256 + level(recipe, channel, y, x)];
  }

  uint8_t level(const ImageRecipe& recipe, int64_t channel, int64_t y, int64_t x) const {
    y = recipe.top + (recipe.flip_rows ? height_ - 1 - y : y);
    x = recipe.left + (recipe.flip_columns ? width_ - 1 - x : x);
    if (recipe.mirror) {
      y = mirrored(y, height_);
      x = mirrored(x, width_);
    }
    if (y < 0 || y >= height_ || x < 0 || x >= width_) return 0;
    return pixels_[((recipe.source * height_ + y) * width_ + x) * channels_ + channel];
  }

  const uint8_t* pixels_;
  const ImageRecipe* recipes_;
  const float* levels_;
  int64_t channels_, height_, width_;
};

void make_images(const KernelArgs& args) {
  const ImageMaker maker(args);
  const TensorView& out = args.outs[0];
  const int64_t channels = out.shape()[1].local, elems = out.shape()[2].local * out.shape()[3].local;
  const size_t bytes = static_cast<size_t>(elems) * size_of(out.dtype());
  std::vector<float> plane(static_cast<size_t>(elems));
  for (int64_t i = 0; i < out.shape()[0].local * channels; ++i) {
    maker.plane(i / channels, i % channels, plane.data());
    convert_floats(plane.data(), DType::kF32,
                   static_cast<std::byte*>(out.data()) + static_cast<size_t>(i) * bytes, out.dtype(),
                   plane.size());
  }
}

}  // namespace

std::vector<OpKernels> images_kernels() {
  return {
      as_it_is<MakeImagesOp, make_images>(),
  };
}

}  // namespace vitrail::ref
