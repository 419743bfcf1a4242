// Says how a training batch's images reach a step. Where the step itself makes them from 8-bit pixels, a
// recipe describes each: source pixels, crop window, flips, erased boxes, mixing partner. A recipe is made of
// 32-bit words, so that a batch of recipes is a tensor i32 [B Z].
#pragma once

#include <cstdint>

namespace vitrail {

// kFloats: normalised images [B C Y X]. kPixels: 8-bit pixels [B Y X C], with recipes. kStored: recipes
// alone, since the pixels of the whole dataset are in device memory.
enum class ImageForm : uint8_t { kFloats, kPixels, kStored };

struct ImageBox {
  int32_t top, left, height, width;
};

enum class ImageMix : int32_t { kNone, kBlend, kCut };

// The recipe of one image; coordinates are pixels at the model's size. The window is cropped out of the
// source, then flipped, normalised through the level table, erased to zero, and mixed with another image of
// the batch that went through the same steps.
struct ImageRecipe {
  static constexpr int32_t kMostErased = 4;

  int32_t source = -1;        // row of the pixels; -1: the image is zero
  int32_t top = 0, left = 0;  // of the window, which may reach outside the source
  int32_t mirror = 0;         // outside the source: 1 mirrors at its border pixels, 0 is black
  int32_t flip_columns = 0, flip_rows = 0;
  int32_t erased = 0;  // boxes
  ImageMix mix = ImageMix::kNone;
  int32_t partner = -1;        // row of the batch
  float lambda = 1, rest = 0;  // kBlend: weights of the image and of its partner
  ImageBox cut = {};           // kCut: the box that comes from the partner
  ImageBox box[kMostErased] = {};
};

inline constexpr int64_t kRecipeWords = sizeof(ImageRecipe) / sizeof(int32_t);

}  // namespace vitrail
