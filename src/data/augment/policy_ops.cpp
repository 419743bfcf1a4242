#include "data/augment/policy_ops.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/augment/colour.h"
#include "data/augment/pixel_ops.h"

namespace vitrail {
namespace {

// `share` is the level divided by the scale's end.
using Rule = double (*)(double share, int64_t side, Draw& draw);
using Apply = void (*)(Image& image, double argument, const Sampling& sampling);

double signed_by(Draw& draw, double value) {
  return draw.chance(0.5) ? -value : value;
}

double whole(double x) {
  return std::trunc(x);
}

double no_argument(double, int64_t, Draw&) {
  return 0;
}
double rotation(double share, int64_t, Draw& draw) {
  return signed_by(draw, share * 30);
}
double shear(double share, int64_t, Draw& draw) {
  return signed_by(draw, share * 0.3);
}
double translation(double share, int64_t side, Draw& draw) {
  return signed_by(draw, share * 0.45) * static_cast<double>(side);
}
double step_translation(double share, int64_t side, Draw& draw) {
  return signed_by(draw, whole(share * 150.0 / 331.0 * static_cast<double>(side)));
}
double factor(double share, int64_t, Draw&) {
  return share * 1.8 + 0.1;
}
double stronger_factor(double share, int64_t, Draw& draw) {
  return std::max(0.1, 1 + signed_by(draw, share * 0.9));
}
double bits_kept(double share, int64_t, Draw&) {
  return whole(share * 4);
}
double fewer_bits(double share, int64_t, Draw&) {
  return 4 - whole(share * 4);
}
double bits_above_four(double share, int64_t, Draw&) {
  return whole(share * 4) + 4;
}
double step_bits(double share, int64_t, Draw&) {
  return 8 - std::nearbyint(share * 4);
}
double threshold(double share, int64_t, Draw&) {
  return std::min(256.0, whole(share * 256));
}
double lower_threshold(double share, int64_t, Draw&) {
  return 256 - std::min(256.0, whole(share * 256));
}
double step_threshold(double share, int64_t, Draw&) {
  return 255 - share * 255;
}
double added(double share, int64_t, Draw&) {
  return std::min(128.0, whole(share * 110));
}
double desaturation(double share, int64_t, Draw&) {
  return std::clamp(0.5 + 0.5 * share, 0.5, 1.0);
}
double deviation(double share, int64_t, Draw& draw) {
  return draw.uniform(0.1, 2.0 * share);
}

struct Row {
  PolicyOp op;
  Rule plain, increasing, steps;
  bool along_rows;  // whether the argument is a share of the height rather than the width
  Apply apply;
};

using S = const Sampling&;
constexpr Row kRows[] = {
    {PolicyOp::kAutoContrast, no_argument, no_argument, no_argument, false,
     [](Image& image, double, S) { auto_contrast(image); }},
    {PolicyOp::kEqualize, no_argument, no_argument, no_argument, false,
     [](Image& image, double, S) { equalize(image); }},
    {PolicyOp::kInvert, no_argument, no_argument, no_argument, false,
     [](Image& image, double, S) { invert(image); }},
    {PolicyOp::kRotate, rotation, rotation, rotation, false,
     [](Image& image, double degrees, S sampling) { rotate(image, degrees, sampling); }},
    {PolicyOp::kPosterize, bits_kept, fewer_bits, step_bits, false,
     [](Image& image, double bits, S) { posterize(image, static_cast<int64_t>(bits)); }},
    {PolicyOp::kPosterizeOriginal, bits_above_four, bits_above_four, step_bits, false,
     [](Image& image, double bits, S) { posterize(image, static_cast<int64_t>(bits)); }},
    {PolicyOp::kSolarize, threshold, lower_threshold, step_threshold, false,
     [](Image& image, double from, S) { solarize(image, from); }},
    {PolicyOp::kSolarizeAdd, added, added, added, false,
     [](Image& image, double amount, S) { solarize_add(image, static_cast<int64_t>(amount)); }},
    {PolicyOp::kColor, factor, stronger_factor, stronger_factor, false,
     [](Image& image, double by, S) { adjust_saturation(image, by); }},
    {PolicyOp::kContrast, factor, stronger_factor, stronger_factor, false,
     [](Image& image, double by, S) { adjust_contrast(image, by); }},
    {PolicyOp::kBrightness, factor, stronger_factor, stronger_factor, false,
     [](Image& image, double by, S) { adjust_brightness(image, by); }},
    {PolicyOp::kSharpness, factor, stronger_factor, stronger_factor, false,
     [](Image& image, double by, S) { adjust_sharpness(image, by); }},
    {PolicyOp::kShearX, shear, shear, shear, false,
     [](Image& image, double by, S sampling) {
       affine(image, {1, by, 0, 0, 1, 0}, sampling);
     }},
    {PolicyOp::kShearY, shear, shear, shear, true,
     [](Image& image, double by, S sampling) {
       affine(image, {1, 0, 0, by, 1, 0}, sampling);
     }},
    {PolicyOp::kTranslateX, translation, translation, step_translation, false,
     [](Image& image, double by, S sampling) {
       affine(image, {1, 0, by, 0, 1, 0}, sampling);
     }},
    {PolicyOp::kTranslateY, translation, translation, step_translation, true,
     [](Image& image, double by, S sampling) {
       affine(image, {1, 0, 0, 0, 1, by}, sampling);
     }},
    {PolicyOp::kDesaturate, desaturation, desaturation, desaturation, false,
     [](Image& image, double by, S) { adjust_saturation(image, 1 - by); }},
    {PolicyOp::kGaussianBlur, deviation, deviation, deviation, false,
     [](Image& image, double sigma, S) { gaussian_blur(image, sigma); }},
    {PolicyOp::kIdentity, no_argument, no_argument, no_argument, false, [](Image&, double, S) {}},
};

const Row& row_of(PolicyOp op) {
  const Row& row = kRows[static_cast<size_t>(op)];
  VT_CHECK(row.op == op, "the rows are not in the order of PolicyOp");
  return row;
}

}  // namespace

double op_argument(PolicyOp op, LevelScale scale, double level, Size image, Draw& draw) {
  const Row& row = row_of(op);
  constexpr double kEnds[] = {10, 10, 9, 30};
  const Rule rules[] = {row.plain, row.increasing, row.steps, row.steps};
  const double share = level / kEnds[static_cast<size_t>(scale)];
  return rules[static_cast<size_t>(scale)](share, row.along_rows ? image.height : image.width, draw);
}

void apply_op(PolicyOp op, double argument, const Sampling& sampling, Image& image) {
  row_of(op).apply(image, argument, sampling);
}

}  // namespace vitrail
