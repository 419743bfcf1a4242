// States what each dialect assumes and no file says: numerics, and how images are preprocessed.
#include "io/cards/stated_config.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

struct Numerics {
  Dialect dialect;
  double norm_eps;
  GeluKind gelu;
  PosResize pos_resize;
};
constexpr Numerics kNumerics[] = {
    {Dialect::kTimm, 1e-6, GeluKind::kErf, PosResize::kTimm},
    {Dialect::kHf, 1e-12, GeluKind::kErf, PosResize::kHf},
    {Dialect::kTorchvision, 1e-6, GeluKind::kErf, PosResize::kTorchvision},
    {Dialect::kGoogle, 1e-6, GeluKind::kTanh, PosResize::kJax},
};

// torchvision's published weights by size, except those that use 256 and bilinear. The SWAG ones use the crop
// without a margin, bicubic; the linear ones among them share the shapes of others and are recognised by the
// name they are published under.
struct TorchvisionRow {
  int64_t width, patch, image, resize;
  Interpolation interpolation;
  const char* origin;
  bool linear = false;
};
constexpr const char* kLinearSwag = "_lc_swag";
constexpr TorchvisionRow kTorchvision[] = {
    {768, 16, 224, 224, Interpolation::kBicubic, "torchvision's vit_b_16 SWAG_LINEAR", true},
    {1024, 16, 224, 224, Interpolation::kBicubic, "torchvision's vit_l_16 SWAG_LINEAR", true},
    {768, 16, 224, 256, Interpolation::kBilinear,
     "torchvision's vit_b_16 V1 (a SWAG_LINEAR file is told by its name, *_lc_swag*)"},
    {1024, 16, 224, 242, Interpolation::kBilinear,
     "torchvision's vit_l_16 V1 (a SWAG_LINEAR file is told by its name, *_lc_swag*)"},
    {768, 16, 384, 384, Interpolation::kBicubic, "torchvision's vit_b_16 SWAG_E2E"},
    {1024, 16, 512, 512, Interpolation::kBicubic, "torchvision's vit_l_16 SWAG_E2E"},
    {1280, 14, 518, 518, Interpolation::kBicubic, "torchvision's vit_h_14 SWAG_E2E"},
    {1280, 14, 224, 224, Interpolation::kBicubic, "torchvision's vit_h_14 SWAG_LINEAR"},
};

DialectPreprocess torchvision_preprocess(const VitConfig& c, const ImageHints& hints) {
  DialectPreprocess found{.preprocess = {.height = c.image_height, .width = c.image_width},
                          .origin = "torchvision's habit"};
  PreprocessConfig& p = found.preprocess;
  p.resize = std::min(p.height, p.width) * 256 / 224;
  p.interpolation = Interpolation::kBilinear;
  p.mean = {0.485, 0.456, 0.406};
  p.std = {0.229, 0.224, 0.225};
  const bool linear = hints.file_name.find(kLinearSwag) != std::string::npos;
  for (const TorchvisionRow& row : kTorchvision) {
    if (row.width != c.width || row.patch != c.patch || row.image != c.image_height ||
        row.image != c.image_width || (row.linear && !linear))
      continue;
    p.resize = row.resize;
    p.interpolation = row.interpolation;
    found.origin = row.origin;
    break;
  }
  return found;
}

// vit_jax stretches; big_vision's classifiers resize the shorter side to 256 for 224, to 448 for 384.
DialectPreprocess google_preprocess(const VitConfig& c, const ImageHints& hints) {
  DialectPreprocess found{.preprocess = {.height = c.image_height, .width = c.image_width},
                          .origin = hints.big_vision ? "big_vision's evaluation" : "vit_jax's evaluation"};
  PreprocessConfig& p = found.preprocess;
  const int64_t side = std::min(p.height, p.width);
  p.mode = hints.big_vision ? ResizeMode::kShorterSide : ResizeMode::kStretch;
  p.resize = !hints.big_vision ? 0 : side == 384 ? 448 : side * 256 / 224;
  p.interpolation = Interpolation::kBilinear;
  p.resampler = hints.big_vision ? Resampler::kTfArea : Resampler::kTf;
  p.mean.assign(static_cast<size_t>(c.channels), 0.5);
  p.std.assign(static_cast<size_t>(c.channels), 0.5);
  return found;
}

}  // namespace

StatedConfig dialect_config(Dialect dialect) {
  StatedConfig stated{.origin = std::string(enum_name(dialect)) + "'s habit"};
  for (const Numerics& row : kNumerics)
    if (row.dialect == dialect)
      stated.model = {{"norm_eps", row.norm_eps},
                      {"gelu", enum_name(row.gelu)},
                      {"pos_resize", enum_name(row.pos_resize)}};
  return stated;
}

std::optional<DialectPreprocess> dialect_preprocess(Dialect dialect, const VitConfig& config,
                                                    const ImageHints& hints) {
  if (dialect == Dialect::kTorchvision) return torchvision_preprocess(config, hints);
  if (dialect == Dialect::kGoogle) return google_preprocess(config, hints);
  return std::nullopt;
}

}  // namespace vitrail
