// One step of the image fuzzers: decodes under small limits and preprocesses an image that was accepted. Any
// exception but vitrail::Error of kind data, or a result that is not finite, is a finding.
#pragma once

#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/decode.h"
#include "data/preprocess.h"

namespace vitrail::fuzz {

inline DecodeLimits small_limits(bool strict) {
  DecodeLimits limits;
  limits.max_side = 4096;
  limits.max_pixels = 1 << 16;
  limits.max_decoded_bytes = 1 << 20;
  limits.max_scans = 20;
  limits.strict = strict;
  return limits;
}

inline PreprocessConfig config_for(size_t choice) {
  PreprocessConfig config;
  config.height = 8;
  config.width = choice & 1 ? 8 : 12;
  config.mode = static_cast<ResizeMode>(choice / 2 % 3);
  config.resize = 10;
  config.resampler = static_cast<Resampler>(choice / 4 % 3);
  config.interpolation = config.resampler == Resampler::kTf ? Interpolation::kBilinear
                                                            : static_cast<Interpolation>(choice / 12 % 5);
  return config;
}

inline void decode_and_preprocess(std::span<const uint8_t> bytes) {
  try {
    DecodeReport report;
    DecodeLimits limits = small_limits(bytes.size() % 2 == 0);
    limits.least_side = static_cast<int64_t>(bytes.size() / 2 % 3);  // 0: whole
    const Image image = decode_image(bytes, limits, &report);
    const PreprocessConfig config = config_for(bytes.size() / 2);
    std::vector<float> target(static_cast<size_t>(3 * config.height * config.width), NAN);
    preprocess(image, config, target);
    for (float value : target)
      if (!std::isfinite(value)) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) std::abort();
  }
}

}  // namespace vitrail::fuzz
