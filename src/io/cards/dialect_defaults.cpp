#include "io/cards/claims.h"
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

// torchvision's published weights by size; the SWAG ones take the crop without a margin, bicubic.
struct TorchvisionRow {
  int64_t width, patch, image, resize;
  Interpolation interpolation;
};
constexpr TorchvisionRow kTorchvision[] = {
    {1024, 16, 224, 242, Interpolation::kBilinear}, {768, 16, 384, 384, Interpolation::kBicubic},
    {1024, 16, 512, 512, Interpolation::kBicubic},  {1280, 14, 518, 518, Interpolation::kBicubic},
    {1280, 14, 224, 224, Interpolation::kBicubic},
};

PreprocessConfig torchvision_preprocess(const VitConfig& c) {
  PreprocessConfig p;
  p.height = c.image_height;
  p.width = c.image_width;
  p.resize = (std::min(p.height, p.width) * 256 + 112) / 224;
  p.interpolation = Interpolation::kBilinear;
  p.mean = {0.485, 0.456, 0.406};
  p.std = {0.229, 0.224, 0.225};
  for (const TorchvisionRow& row : kTorchvision)
    if (row.width == c.width && row.patch == c.patch && row.image == c.image_height &&
        row.image == c.image_width) {
      p.resize = row.resize;
      p.interpolation = row.interpolation;
    }
  return p;
}

PreprocessConfig google_preprocess(const VitConfig& c) {
  PreprocessConfig p;
  p.height = c.image_height;
  p.width = c.image_width;
  p.mode = ResizeMode::kStretch;
  p.resize = 0;
  p.interpolation = Interpolation::kBilinear;
  p.resampler = Resampler::kTf;
  p.mean.assign(static_cast<size_t>(c.channels), 0.5);
  p.std.assign(static_cast<size_t>(c.channels), 0.5);
  return p;
}

}  // namespace

Claims dialect_claims(Dialect dialect) {
  Claims claims{.origin = std::string(enum_name(dialect)) + "'s habit"};
  for (const Numerics& row : kNumerics)
    if (row.dialect == dialect)
      claims.model = {{"norm_eps", row.norm_eps},
                      {"gelu", enum_name(row.gelu)},
                      {"pos_resize", enum_name(row.pos_resize)}};
  return claims;
}

std::optional<PreprocessConfig> dialect_preprocess(Dialect dialect, const VitConfig& config) {
  if (dialect == Dialect::kTorchvision) return torchvision_preprocess(config);
  if (dialect == Dialect::kGoogle) return google_preprocess(config);
  return std::nullopt;
}

}  // namespace vitrail
