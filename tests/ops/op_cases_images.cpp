// Images made from pixels: every step of a recipe, alone and together.
#include <cstring>

#include "image/image_recipe.h"
#include "op_cases.h"
#include "ops/make_images.h"

namespace vitrail {

namespace {

std::vector<ImageRecipe> recipes(int32_t height, int32_t width) {
  std::vector<ImageRecipe> all(9);
  all[0] = {.source = 2};
  all[1] = {.source = 0, .top = -2, .left = 3, .flip_columns = 1};
  all[2] = {.source = 3, .top = 1, .left = -4, .mirror = 1, .flip_rows = 1};
  all[3] = {.source = 1, .erased = 2};
  all[3].box[0] = {1, 2, 3, 4};
  all[3].box[1] = {height - 2, 0, 2, width};
  // All steps together, blended with an image that is cut into in turn.
  all[4] = {.source = 2, .top = -3, .left = -3, .mirror = 1, .flip_columns = 1, .flip_rows = 1, .erased = 4};
  for (int32_t i = 0; i < ImageRecipe::kMostErased; ++i) all[4].box[i] = {i, 2 * i, 2, 2};
  all[4].mix = ImageMix::kBlend, all[4].partner = 5, all[4].lambda = 0.3f, all[4].rest = 0.7f;
  all[5] = {.source = 0, .mix = ImageMix::kCut, .partner = 4, .cut = {2, 1, height - 3, 4}};
  all[6] = {};  // zero
  all[7] = {.source = 3, .mix = ImageMix::kBlend, .partner = 8, .lambda = 0.9f, .rest = 0.1f};
  all[8] = {.source = 3, .top = -height, .left = width};  // nothing but border
  return all;
}

std::vector<double> words(const std::vector<ImageRecipe>& all) {
  std::vector<int32_t> raw(all.size() * static_cast<size_t>(kRecipeWords));
  std::memcpy(raw.data(), all.data(), raw.size() * sizeof(int32_t));
  return {raw.begin(), raw.end()};
}

}  // namespace

void add_image_cases(std::vector<OpCase>& cases) {
  struct Sizes {
    int64_t height, width, channels;
  };
  const auto add = [&](DType to, const Sizes& s) {
    const std::vector<ImageRecipe> all =
        recipes(static_cast<int32_t>(s.height), static_cast<int32_t>(s.width));
    const Dim c('C', s.channels);
    cases.push_back({strf("make_images_%lldx%lldx%lld_%s", static_cast<long long>(s.channels),
                          static_cast<long long>(s.height), static_cast<long long>(s.width), to_string(to)),
                     make_op<MakeImagesOp>(to),
                     {{{'R', 4}, {'Y', s.height}, {'X', s.width}, c},
                      {{'B', std::ssize(all)}, {'Z', kRecipeWords}},
                      {c, {'Z', 256}}},
                     {false, false, false},
                     {Role::kPixels, Role::kWords, Role::kFull},
                     {{1, words(all)}}});
  };
  for (DType to : {DType::kF32, DType::kBF16, DType::kF16}) add(to, {8, 9, 3});
  add(DType::kF32, {7, 16, 1});
  add(DType::kBF16, {67, 65, 3});  // more than a block of the GPU takes
}

}  // namespace vitrail
