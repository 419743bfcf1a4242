// Training images from 8-bit pixels: pixels u8 [R Y X C], recipes i32 [B Z] (image/image_recipe.h), levels
// f32 [C Z] (what normalisation makes of each of the 256 levels) -> [B C Y X] of the type given. Blends are
// computed in f32, each product rounded before the sum, whatever the type.
#pragma once

#include "graph/op.h"
#include "image/image_recipe.h"
#include "ops/expect.h"

namespace vitrail {

class MakeImagesOp : public Op {
 public:
  explicit MakeImagesOp(DType to) : to_(to) {}

  static constexpr std::string_view kKind = "make_images";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  // Recipes name rows of their own part of the pixels, where those are of the batch.
  DimsRule dims() const override { return {.whole = "RYXZ", .with_batch = 'R'}; }

 private:
  DType to_;
};

inline std::vector<TensorDesc> MakeImagesOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  const Shape &pixels = ins[0].shape, &recipes = ins[1].shape, &levels = ins[2].shape;
  for (char name : {'R', 'Y', 'X', 'C'}) expect_dim(*this, pixels, name);
  expect_last(*this, pixels, 'C');
  VT_CHECK(ins[0].dtype == DType::kU8 && ins[1].dtype == DType::kI32 && ins[2].dtype == DType::kF32,
           "make_images: expected u8, i32 and f32, found %s, %s and %s", to_string(ins[0]).c_str(),
           to_string(ins[1]).c_str(), to_string(ins[2]).c_str());
  VT_CHECK(recipes.rank() == 2 && recipes[0].name == 'B' && recipes[1] == Dim('Z', kRecipeWords),
           "make_images: recipes %s", to_string(recipes).c_str());
  VT_CHECK(levels == Shape({pixels[3], Dim('Z', 256)}), "make_images: levels %s for pixels %s",
           to_string(levels).c_str(), to_string(pixels).c_str());
  VT_CHECK(is_float(to_), "make_images: to %s", to_string(to_));
  return {{to_, {recipes[0], pixels[3], pixels[1], pixels[2]}}};
}

}  // namespace vitrail
