// The functions that decode.cpp shares with the three codec wrappers. Private to src/data.
#pragma once

#include <span>
#include <string>

#include "image/image.h"

namespace vitrail::codecs {

using Bytes = std::span<const uint8_t>;

Image decode_jpeg(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);
Image decode_png(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);
Image decode_webp(Bytes bytes, const DecodeLimits& limits, DecodeReport& report);

// Returns the memory that decoding takes beyond the file itself, from its header alone: the pixels, and the
// codec's own buffers.
int64_t working_bytes_jpeg(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes_png(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes_webp(Bytes bytes, const DecodeLimits& limits);
int64_t working_bytes(Bytes bytes, const DecodeLimits& limits);  // of any of the three formats; 0 for others

// Refuses a size before anything of that size is allocated.
void check_size(const char* format, int64_t width, int64_t height, const DecodeLimits& limits);

// Throws because the codec failed, or warned under DecodeLimits::strict.
[[noreturn]] void refuse(const char* format, const std::string& reason);

// Returns IFD0's orientation (1..8) in a block that starts with a TIFF header; 0 when absent or malformed.
int exif_orientation(Bytes tiff);

}  // namespace vitrail::codecs
