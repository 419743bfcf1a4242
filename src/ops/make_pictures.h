// Makes training images from 8-bit pixels: pixels u8 [R Y X C], recipes i32 [B Z] (base/picture_recipe.h),
// levels f32 [C Z] (the normalised value of each of the 256 levels) -> [B C Y X] of the type given. Blends
// are computed in f32, each product rounded before the sum, whatever the type.
#pragma once

#include "graph/op.h"

namespace vitrail {

class MakePicturesOp : public Op {
 public:
  explicit MakePicturesOp(DType to) : to_(to) {}

  static constexpr std::string_view kKind = "make_pictures";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"BRYXZ"}; }

 private:
  DType to_;
};

}  // namespace vitrail
