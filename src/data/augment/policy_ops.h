// The operations of automatic policies: one row each, with the rules that turn a policy's level into the
// operation's argument. A new operation is one row. Private to the policies; levels, colour, blur and
// geometry hold the pixel code.
#pragma once

#include "base/enum_names.h"
#include "data/augment/draw.h"
#include "data/augment/geometry.h"

namespace vitrail {

enum class PolicyOp {
  kAutoContrast,
  kEqualize,
  kInvert,
  kRotate,
  kPosterize,
  kPosterizeOriginal,
  kSolarize,
  kSolarizeAdd,
  kColor,
  kContrast,
  kBrightness,
  kSharpness,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kDesaturate,
  kGaussianBlur,
  kIdentity
};

template <>
struct EnumNames<PolicyOp> {
  static constexpr const char* names[] = {
      "AutoContrast",      "Equalize",   "Invert",       "Rotate",  "Posterize",
      "PosterizeOriginal", "Solarize",   "SolarizeAdd",  "Color",   "Contrast",
      "Brightness",        "Sharpness",  "ShearX",       "ShearY",  "TranslateX",
      "TranslateY",        "Desaturate", "GaussianBlur", "Identity"};
};

// Says how levels are read: on timm's scale of 0..10; the same where every operation grows stronger with the
// level (`inc1`); or by torchvision's steps, ten of AutoAugment (0..9) and thirty-one of RandAugment (0..30).
enum class LevelScale { kPlain, kIncreasing, kTenSteps, kThirtySteps };

// Returns the argument of `op` at `level`; signs (and the standard deviation of a blur) are drawn. `image`
// is the image's size, since translations are shares of it.
double op_argument(PolicyOp op, LevelScale scale, double level, Size image, Draw& draw);

void apply_op(PolicyOp op, double argument, const Sampling& sampling, Image& image);

}  // namespace vitrail
