#include "data/augment/augment_config.h"

#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "data/augment/policy.h"

namespace vitrail {
namespace {

void require_probability(const char* key, double value) {
  VT_REQUIRE(value >= 0 && value <= 1, ErrorKind::kConfig, "augment.%s is %g: expected a probability, 0..1",
             key, value);
}

void require_range(const char* key, const std::vector<double>& range, double low, double high) {
  VT_REQUIRE(range.size() == 2, ErrorKind::kConfig, "augment.%s has %zu values: expected two, [least, most]",
             key, range.size());
  VT_REQUIRE(range[0] >= low && range[0] <= range[1] && range[1] <= high, ErrorKind::kConfig,
             "augment.%s is [%g, %g]: expected %g <= least <= most <= %g", key, range[0], range[1], low,
             high);
}

void require_alpha(const char* key, double value) {
  VT_REQUIRE(value == 0 || (value >= 1e-3 && value <= 1e3), ErrorKind::kConfig,
             "augment.%s is %g: expected 0 (off) or 0.001..1000", key, value);
}

void check_colour_jitter(const std::vector<double>& strengths) {
  const size_t count = strengths.size();
  VT_REQUIRE(count <= 4 && count != 2, ErrorKind::kConfig,
             "augment.colour_jitter has %zu values: expected none, one, or brightness, contrast, saturation "
             "and perhaps hue",
             count);
  for (size_t i = 0; i < count; ++i) {
    const double most = i == 3 ? 0.5 : 100;
    VT_REQUIRE(strengths[i] >= 0 && strengths[i] <= most, ErrorKind::kConfig,
               "augment.colour_jitter[%zu] is %g: expected 0..%g", i, strengths[i], most);
  }
}

}  // namespace

void validate(const AugmentConfig& c) {
  constexpr double kTiny = 1e-6;
  require_range("crop_scale", c.crop_scale, kTiny, 1);
  require_range("crop_ratio", c.crop_ratio, 1e-3, 1e3);
  require_in_range("augment.pad", c.pad, 0, 1024);
  require_probability("hflip", c.hflip);
  require_probability("vflip", c.vflip);
  parse_policy(c.policy);
  check_colour_jitter(c.colour_jitter);
  require_probability("colour_jitter_prob", c.colour_jitter_prob);
  require_probability("grayscale", c.grayscale);
  require_probability("blur", c.blur);
  require_range("blur_sigma", c.blur_sigma, 0, 100);
  require_probability("erase", c.erase);
  require_in_range("augment.erase_count", c.erase_count, 1, 100);
  require_range("erase_area", c.erase_area, kTiny, 1);
  require_alpha("mixup", c.mixup);
  require_alpha("cutmix", c.cutmix);
  require_probability("mix_prob", c.mix_prob);
  require_probability("mix_switch", c.mix_switch);
  require_in_range("augment.mix_group", c.mix_group, 2, 4096);
  VT_REQUIRE(c.mix_group % 2 == 0, ErrorKind::kConfig,
             "augment.mix_group is %lld: expected an even number, since samples are mixed in pairs",
             static_cast<long long>(c.mix_group));
  require_in_range("augment.repeats", c.repeats, 1, 64);
}

}  // namespace vitrail
