// How a training batch's pictures reach a step, and, where the step makes them itself from 8-bit pixels, the
// recipe of each: which pixels, the window, flips, erased boxes, what it is mixed with. A recipe is made of
// 32-bit words, so that a batch of recipes is a tensor i32 [B Z].
#pragma once

#include <cstdint>

namespace vitrail {

// kFloats: normalised, [B C Y X]. kPixels: 8-bit [B Y X C], with recipes. kStored: recipes alone, the pixels
// of the whole dataset lie on the device.
enum class PictureForm : uint8_t { kFloats, kPixels, kStored };

struct PictureBox {
  int32_t top, left, height, width;
};

enum class PictureMix : int32_t { kNone, kBlend, kCut };

// Pixels of the model's size. The window is cut out of the source, then flipped, normalised by level, erased
// to zero, and mixed with another picture of the batch, itself made so far.
struct PictureRecipe {
  static constexpr int32_t kMostErased = 4;

  int32_t source = -1;        // row of the pixels; -1: the picture is zero
  int32_t top = 0, left = 0;  // of the window, which may reach outside of the source
  int32_t mirror = 0;         // there: the source mirrored at its border pixels, else black
  int32_t flip_columns = 0, flip_rows = 0;
  int32_t erased = 0;  // boxes
  PictureMix mix = PictureMix::kNone;
  int32_t partner = -1;        // row of the batch
  float lambda = 1, rest = 0;  // kBlend: shares of the picture and of its partner
  PictureBox cut = {};         // kCut: the box that comes from the partner
  PictureBox box[kMostErased] = {};
};

inline constexpr int64_t kRecipeWords = sizeof(PictureRecipe) / sizeof(int32_t);

}  // namespace vitrail
