// How much memory decoding takes, known from the headers of image files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset.h"
#include "data/image.h"

namespace vitrail {

// What decoding the whole image of this file takes at most, its pixels included; 0 for what is not decoded.
size_t decoding_bytes(std::span<const uint8_t> file, const DecodeLimits& limits = {});

// The most that decoding one image of the dataset takes, judged by up to 32 of them, evenly spread; 0 where
// images are stored as pixels.
size_t largest_decoding(const Dataset& dataset);

}  // namespace vitrail
