// The augmentation of training images, as data; docs/augmentation.md explains each key. Knows no pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

enum class CropKind { kNone, kResized, kPad };
enum class PadMode { kZero, kReflect };
enum class AugmentInterpolation { kModel, kRandom, kNearest, kBilinear, kBicubic };
enum class EraseMode { kConst, kRand, kPixel };

template <>
struct EnumNames<CropKind> {
  static constexpr const char* names[] = {"none", "resized", "pad"};
};
template <>
struct EnumNames<PadMode> {
  static constexpr const char* names[] = {"zero", "reflect"};
};
template <>
struct EnumNames<AugmentInterpolation> {
  static constexpr const char* names[] = {"model", "random", "nearest", "bilinear", "bicubic"};
};
template <>
struct EnumNames<EraseMode> {
  static constexpr const char* names[] = {"const", "rand", "pixel"};
};

struct AugmentConfig {
  CropKind crop = CropKind::kNone;
  std::vector<double> crop_scale = {0.08, 1};
  std::vector<double> crop_ratio = {3.0 / 4, 4.0 / 3};
  int64_t pad = 4;
  PadMode pad_mode = PadMode::kZero;
  AugmentInterpolation interpolation = AugmentInterpolation::kModel;
  double hflip = 0.5;
  double vflip = 0;
  std::string policy;
  std::vector<double> colour_jitter;
  double colour_jitter_prob = 1;
  double grayscale = 0;
  double blur = 0;
  std::vector<double> blur_sigma = {0.1, 2};
  double erase = 0;
  EraseMode erase_mode = EraseMode::kConst;
  int64_t erase_count = 1;
  std::vector<double> erase_area = {0.02, 1.0 / 3};
  double mixup = 0;
  double cutmix = 0;
  double mix_prob = 1;
  double mix_switch = 0.5;
  int64_t mix_group = 16;
  int64_t repeats = 1;

  bool mixes() const { return (mixup > 0 || cutmix > 0) && mix_prob > 0; }

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("crop", c.crop, "none (as for evaluation), resized (random area and shape) or pad (pad, random crop)");
    v("crop_scale", c.crop_scale, "smallest and largest share of the area that `resized` keeps");
    v("crop_ratio", c.crop_ratio, "smallest and largest width / height that `resized` cuts");
    v("pad", c.pad, "pixels that `pad` adds on every side before it crops");
    v("pad_mode", c.pad_mode, "zero or reflect");
    v("interpolation", c.interpolation,
      "of crops and policies: model (as preprocessing says), random (bilinear or bicubic), nearest, "
      "bilinear or bicubic");
    v("hflip", c.hflip, "probability of a left-right flip");
    v("vflip", c.vflip, "probability of a top-bottom flip");
    v("policy", c.policy,
      "rand-m9-mstd0.5-inc1 and the like, torchvision-m9-n2, original, v0, cifar10 or 3a; empty: none");
    v("colour_jitter", c.colour_jitter,
      "strengths of brightness, contrast, saturation and perhaps hue; one number: the first three");
    v("colour_jitter_prob", c.colour_jitter_prob, "probability of colour jitter");
    v("grayscale", c.grayscale, "probability of a grey image");
    v("blur", c.blur, "probability of a Gaussian blur");
    v("blur_sigma", c.blur_sigma, "smallest and largest deviation of that blur, in pixels");
    v("erase", c.erase, "probability of erasing random rectangles");
    v("erase_mode", c.erase_mode, "filled with: const (the mean), rand (one random colour), pixel (noise)");
    v("erase_count", c.erase_count, "rectangles, at most");
    v("erase_area", c.erase_area, "smallest and largest share of the area erased");
    v("mixup", c.mixup, "alpha of mixup; 0: off");
    v("cutmix", c.cutmix, "alpha of cutmix; 0: off");
    v("mix_prob", c.mix_prob, "probability that a group is mixed at all");
    v("mix_switch", c.mix_switch, "probability of cutmix rather than mixup when both are on");
    v("mix_group", c.mix_group,
      "consecutive samples that are mixed among themselves; divides the micro-batch");
    v("repeats", c.repeats,
      "times a sample follows itself, each time varied differently; an epoch keeps its length");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const AugmentConfig& config);

}  // namespace vitrail
