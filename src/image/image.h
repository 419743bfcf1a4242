// An image in memory, the limits under which one is decoded, and the decoder's report. Knows no file format
// and no model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail {

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // rows, interleaved

  static Image blank(int64_t height, int64_t width, int64_t channels) {
    return {height, width, channels, std::vector<uint8_t>(static_cast<size_t>(height * width * channels))};
  }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }
  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
};

// Reflects a position: 0 1 2 3 read at -2 is 2, at 5 is 1; the border pixel is not repeated.
inline int64_t mirrored(int64_t at, int64_t size) {
  if (at < 0) at = -at;
  if (at >= size) at = 2 * (size - 1) - at;
  return std::clamp<int64_t>(at, 0, size - 1);
}

struct DecodeLimits {
  int64_t max_file_bytes = int64_t{256} << 20;
  int64_t max_side = 65535;
  int64_t max_pixels = 50'000'000;
  int64_t max_decoded_bytes = int64_t{256} << 20;
  int64_t max_scans = 100;  // of a progressive JPEG; fewer for images near max_pixels
  bool strict = true;       // a codec's warning (a truncated JPEG, junk between markers) refuses the image
  // When positive, the caller will shrink the image until its shorter side is about this long: a JPEG may be
  // decoded at 1/2, 1/4 or 1/8 of its size while both sides stay at least twice as long and its shape is kept
  // (decode_jpeg.cpp states how well). 0: full size.
  int64_t least_side = 0;

  // The limits for a training set, where a damaged image is counted rather than refused.
  static DecodeLimits for_datasets() {
    DecodeLimits limits;
    limits.max_scans = 500;
    limits.strict = false;
    return limits;
  }
};

struct DecodeReport {
  std::string format;  // "JPEG", "PNG", "WebP"
  std::string colour;  // as stored: "grey", "grey+alpha", "palette", "rgb", "rgba", "ycbcr", "cmyk", "ycck"
  int bits = 8;        // per channel, as stored
  int exif_orientation = 0;  // 1..8 as stored, 0 when there is none; reported, never applied
  bool cut_short = false;    // the file ends before its image does; always false under strict
  int64_t warnings = 0;      // of the codec; always 0 under DecodeLimits::strict
  std::string first_warning;
};

}  // namespace vitrail
