// What decode.cpp shares with the three codec wrappers. Private to src/data.
#pragma once

#include <span>
#include <string>

#include "data/image.h"

namespace vitrail::codecs {

using Bytes = std::span<const uint8_t>;

Image decode_jpeg(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);
Image decode_png(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);
Image decode_webp(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);

// What decoding takes beyond the file itself, from its header alone: the pixels, and what the codec holds
// beside.
int64_t working_bytes_jpeg(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes_png(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes_webp(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes(Bytes bytes, const DecodeLimits& limits);  // of whichever it is; 0 for none of them

// Refuses a size before anything of that size is allocated.
void check_size(const char* format, int64_t width, int64_t height, const DecodeLimits& limits);

// The codec gave up, or warned under DecodeLimits::strict.
[[noreturn]] void refuse(const char* format, const std::string& reason);

// IFD0's orientation (1..8) in a block that starts with a TIFF header; 0 when absent or malformed.
int exif_orientation(Bytes tiff);

}  // namespace vitrail::codecs
