// The arguments for making images from 8-bit pixels, as program and plugin agree on them.
#pragma once

#include "backend/cuda/api/session.h"
#include "image/image_recipe.h"

namespace vitrail::cuda {

// The pixels are [rows, height, width, channels], the recipes one per image of the batch, the levels
// [channels, 256], and out is [batch, channels, height, width].
struct ImagesCall {
  const uint8_t* pixels = nullptr;
  const ImageRecipe* recipes = nullptr;
  const float* levels = nullptr;
  Operand out;
  int64_t batch = 0, channels = 0, height = 0, width = 0;  // 1 or 3 channels
};

struct ImagesApi {
  void (*make)(Session&, const ImagesCall&);
};

}  // namespace vitrail::cuda
