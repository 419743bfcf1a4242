// Estimates the memory that decoding takes, from the headers of image files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset.h"
#include "image/image.h"

namespace vitrail {

// Returns the most memory that decoding the whole image of this file takes, its pixels included; 0 for a file
// that is not decoded.
size_t decoding_bytes(std::span<const uint8_t> file, const DecodeLimits& limits = {});

// Returns the most memory that decoding one image of the dataset takes, estimated from up to 32 of them,
// evenly spread; 0 where images are stored as pixels.
size_t largest_decoding(const Dataset& dataset);

}  // namespace vitrail
