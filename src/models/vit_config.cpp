#include "models/vit_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

namespace {
struct Range {
  const char* name;
  int64_t value, least, most;
};

void check_ranges(const VitConfig& c) {
  const Range ranges[] = {
      {"image_height", c.image_height, 1, 1 << 15},
      {"image_width", c.image_width, 1, 1 << 15},
      {"patch", c.patch, 1, 1024},
      {"patch_width", c.patch_width, 0, 1024},
      {"channels", c.channels, 1, 4096},
      {"width", c.width, 1, 1 << 16},
      {"depth", c.depth, 0, 1024},
      {"heads", c.heads, 1, 1024},
      {"mlp", c.mlp, 1, 1 << 18},
      {"classes", c.classes, 0, 1 << 22},
      {"representation", c.representation, 0, 1 << 16},
      {"registers", c.registers, 0, 1024},
  };
  for (const Range& r : ranges)
    VT_REQUIRE(r.value >= r.least && r.value <= r.most, ErrorKind::kConfig,
               "model.%s is %lld; it must be between %lld and %lld", r.name, static_cast<long long>(r.value),
               static_cast<long long>(r.least), static_cast<long long>(r.most));
}

long long n(int64_t value) {
  return value;
}

// Returns the largest divisor of `number` that is at most `most`.
int64_t divisor_below(int64_t number, int64_t most) {
  int64_t divisor = std::min(number, most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

void check_heads(const VitConfig& c) {
  if (c.width % c.heads == 0) return;
  throw Error(ErrorKind::kConfig,
              strf("model.heads (%lld) does not divide model.width (%lld)", n(c.heads), n(c.width)),
              strf("model.heads=%lld, or model.width=%lld", n(divisor_below(c.width, c.heads)),
                   n((c.width / c.heads + 1) * c.heads)));
}

[[noreturn]] void refuse_patch(const VitConfig& c, const char* why) {
  const int64_t height = round_up(c.image_height, c.patch),
                width = round_up(c.image_width, c.patch_columns());
  std::string advice = height == width
                           ? strf("model.image=%lld", n(height))
                           : strf("model.image_height=%lld and model.image_width=%lld", n(height), n(width));
  if (c.patch == c.patch_columns()) {
    const int64_t patch = divisor_below(std::gcd(c.image_height, c.image_width), c.patch);
    advice = strf("model.patch=%lld, or ", n(patch)) + advice;
  }
  throw Error(ErrorKind::kConfig,
              strf("model.patch (%lld) %s the image (%lld x %lld)", n(c.patch), why, n(c.image_height),
                   n(c.image_width)),
              advice);
}

void check_sincos(const VitConfig& c) {
  if (c.pos != PosKind::kSinCos2d) return;
  if (c.pos_prefix_rows() != 0)
    throw Error(ErrorKind::kConfig, "sincos2d positions have no row for the class token or registers",
                "model.pos_for_prefix=false beside model.pos=sincos2d");
  if (c.width % 4 != 0)
    throw Error(ErrorKind::kConfig,
                strf("sincos2d positions need a model.width divisible by 4, not %lld", n(c.width)),
                strf("model.width=%lld", n((c.width / 4 + 1) * 4)));
}
}  // namespace

void validate(const VitConfig& c) {
  check_ranges(c);
  check_heads(c);
  if (c.patch > c.image_height || c.patch_columns() > c.image_width) refuse_patch(c, "is larger than");
  VT_REQUIRE(c.tokens() <= 1 << 16, ErrorKind::kConfig, "%lld tokens; at most 65536 are supported",
             n(c.tokens()));
  VT_REQUIRE(std::isfinite(c.norm_eps) && c.norm_eps >= 0 && c.norm_eps <= 1, ErrorKind::kConfig,
             "model.norm_eps is %g; it must be between 0 and 1", c.norm_eps);
  VT_REQUIRE(c.pool != Pool::kCls || c.class_token, ErrorKind::kConfig,
             "model.pool is cls but model.class_token is false");
  VT_REQUIRE(!c.distilled || (c.class_token && c.pool == Pool::kCls), ErrorKind::kConfig,
             "a distilled model needs the class token and pool cls");
  VT_REQUIRE(!c.distilled || (!c.pre_logits && c.norm_place != NormPlace::kAfterPool), ErrorKind::kConfig,
             "a distilled model has no pre_logits, and no norm after pooling");
  VT_REQUIRE(c.pre_logits || c.representation == 0, ErrorKind::kConfig,
             "model.representation is %lld, the outputs of pre_logits, but model.pre_logits is false",
             n(c.representation));
  check_sincos(c);
}

VitConfig without_repeated_extents(VitConfig c) {
  if (c.patch_width == c.patch) c.patch_width = 0;
  if (c.representation == c.width) c.representation = 0;
  return c;
}

bool patches_cover(const VitConfig& c) {
  return c.image_height % c.patch == 0 && c.image_width % c.patch_columns() == 0;
}

void require_patches_cover(const VitConfig& asked, const VitConfig& published) {
  const auto sizes = [](const VitConfig& of) {
    return std::array{of.image_height, of.image_width, of.patch, of.patch_columns()};
  };
  if (!patches_cover(asked) && sizes(asked) != sizes(published)) refuse_patch(asked, "does not divide");
}

}  // namespace vitrail
