#include "ops/make_pictures.h"

#include "base/picture_recipe.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> MakePicturesOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  const Shape &pixels = ins[0].shape, &recipes = ins[1].shape, &levels = ins[2].shape;
  for (char name : {'R', 'Y', 'X', 'C'}) expect_dim(*this, pixels, name);
  expect_last(*this, pixels, 'C');
  VT_CHECK(ins[0].dtype == DType::kU8 && ins[1].dtype == DType::kI32 && ins[2].dtype == DType::kF32,
           "make_pictures: expected u8, i32 and f32, found %s, %s and %s", to_string(ins[0]).c_str(),
           to_string(ins[1]).c_str(), to_string(ins[2]).c_str());
  VT_CHECK(recipes.rank() == 2 && recipes[0].name == 'B' && recipes[1] == Dim('Z', kRecipeWords),
           "make_pictures: recipes %s", to_string(recipes).c_str());
  VT_CHECK(levels == Shape({pixels[3], Dim('Z', 256)}), "make_pictures: levels %s for pixels %s",
           to_string(levels).c_str(), to_string(pixels).c_str());
  VT_CHECK(is_float(to_), "make_pictures: to %s", to_string(to_));
  return {{to_, {recipes[0], pixels[3], pixels[1], pixels[2]}}};
}

}  // namespace vitrail
