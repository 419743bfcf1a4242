// Writes images as PNG. Knows no model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image.h"

namespace vitrail {

// Encodes 1 (grey), 3 (RGB) or 4 (RGBA) channels.
std::vector<uint8_t> encode_png(const Image& image);

// Replaces `path` completely or not at all; throws Error(kWrite) naming the path.
void write_png(const std::string& path, const Image& image);

}  // namespace vitrail
