// Images from the bytes of files, turned upright where one asks for it, and written as PNG. Knows nothing of
// models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/image.h"

namespace vitrail {

// From the bytes of a JPEG, PNG or WebP file to 8-bit RGB, equal to what Pillow's
// Image.open(f).convert("RGB") gives, with two stated rules of our own: 16-bit samples keep their top byte
// (Pillow saturates 16-bit grey), and EXIF orientation is reported but not applied (as timm and torchvision
// do). Knows nothing of models.

// Throws Error(kData) for anything that is not a whole image within `limits`.
Image decode_image(std::span<const uint8_t> bytes, const DecodeLimits& limits = {},
                   DecodeReport* report = nullptr);

// Does the same for a file; every error names the path.
Image load_image(const std::string& path, const DecodeLimits& limits = {}, DecodeReport* report = nullptr);

// The endings, without their dot, of files that decode_image reads; and whether one is among them, in any
// case.
const std::vector<std::string>& image_endings();
bool is_image_ending(std::string_view ending);

// Returns whether a file that starts like this holds text: no control characters but white space.
bool looks_like_text(std::span<const uint8_t> bytes);

// Turning an image as its EXIF orientation says it is to be seen. Decoding itself leaves pixels as stored.

// `orientation` as DecodeReport has it: 1 to 8, anything else leaves the image as it is.
Image turned_upright(Image image, int orientation);

// Images written as PNG: attention overlays, reports, tests. Knows no model.

// 1 (grey), 3 (RGB) or 4 (RGBA) channels.
std::vector<uint8_t> encode_png(const Image& image);

// Replaces `path` completely or not at all; Error kWrite names the path.
void write_png(const std::string& path, const Image& image);

}  // namespace vitrail
