// Images from 8-bit pixels, as program and plugin agree on them. Filled by launch_images.cpp, read by
// device/images.cu.
#pragma once

#include "backend/cuda/api/session.h"
#include "image/image_recipe.h"

namespace vitrail::cuda {

// Pixels [rows, height, width, channels], one recipe an image of the batch, levels [channels, 256]; out
// [batch, channels, height, width].
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
