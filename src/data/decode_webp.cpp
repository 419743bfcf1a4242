// Decodes WebP by libwebp, within limits.
#include <webp/decode.h>

#include <cstring>

#include "base/error.h"
#include "data/codecs.h"

namespace vitrail::codecs {
namespace {

const char* status_name(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "the bitstream is damaged";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature libwebp does not have";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends too early";
    default:
      return "libwebp cannot decode it";
  }
}

uint32_t little_endian_32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

int orientation_of(Bytes bytes) {
  constexpr size_t kRiffHead = 12, kHead = 8, kExifMark = 6;
  for (size_t at = kRiffHead; at < bytes.size() && bytes.size() - at >= kHead;) {
    const uint8_t* head = bytes.data() + at;
    const size_t length = little_endian_32(head + 4), left = bytes.size() - at - kHead;
    if (length > left) break;
    Bytes body = bytes.subspan(at + kHead, length);
    if (std::memcmp(head, "EXIF", 4) == 0) {
      // Some writers keep JPEG's marker in front of the TIFF header.
      const bool marked = length > kExifMark && std::memcmp(body.data(), "Exif\0\0", kExifMark) == 0;
      return exif_orientation(marked ? body.subspan(kExifMark) : body);
    }
    at += kHead + length + (length & 1);
  }
  return 0;
}

}  // namespace

int64_t working_bytes_webp(Bytes bytes, const DecodeLimits& limits) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) refuse("WebP", status_name(status));
  check_size("WebP", features.width, features.height, limits);
  constexpr int kLossless = 2;  // keeps all pixels as 32-bit words until it is done
  return int64_t{features.width} * features.height * (features.format == kLossless ? 3 + 4 : 3);
}

Image decode_webp(Bytes bytes, const DecodeLimits& limits, DecodeReport& report) {
  WebPDecoderConfig config;
  VT_CHECK(WebPInitDecoderConfig(&config), "libwebp has another major version than its header");
  VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &config.input);
  if (status != VP8_STATUS_OK) refuse("WebP", status_name(status));
  const int64_t width = config.input.width, height = config.input.height;
  check_size("WebP", width, height, limits);
  if (config.input.has_animation)
    throw Error(ErrorKind::kData, "expected a still image, found an animated WebP",
                "extract one of its frames");
  report.colour = config.input.has_alpha ? "rgba" : config.input.format == 1 ? "ycbcr" : "rgb";
  report.exif_orientation = orientation_of(bytes);

  Image image = Image::blank(height, width, 3);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(width * 3);
  config.output.u.RGBA.size = image.pixels.size();
  status = WebPDecode(bytes.data(), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) refuse("WebP", status_name(status));
  return image;
}

}  // namespace vitrail::codecs
