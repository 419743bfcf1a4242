// Decodes the bytes of a JPEG, PNG or WebP file to 8-bit RGB, equal to Pillow's Image.open(f).convert("RGB"),
// with two deliberate exceptions: 16-bit samples keep their top byte (Pillow saturates 16-bit grey), and EXIF
// orientation is reported but not applied (as timm and torchvision do). Knows nothing of models.
#pragma once

#include <span>
#include <string>

#include "data/image.h"

namespace vitrail {

// Throws Error(kData) for anything that is not a whole image within `limits`.
Image decode_image(std::span<const uint8_t> bytes, const DecodeLimits& limits = {},
                   DecodeReport* report = nullptr);

// Does the same for a file; every error names the path.
Image load_image(const std::string& path, const DecodeLimits& limits = {}, DecodeReport* report = nullptr);

// Whether a file that starts like this holds text: no control characters but white space.
bool looks_like_text(std::span<const uint8_t> bytes);

}  // namespace vitrail
