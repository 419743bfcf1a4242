#include "data/decode.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/codecs.h"

namespace vitrail {

namespace codecs {

void check_size(const char* format, int64_t width, int64_t height, const DecodeLimits& limits) {
  VT_REQUIRE(width > 0 && height > 0, ErrorKind::kData, "%s of %lld x %lld pixels: a side is 0", format,
             static_cast<long long>(width), static_cast<long long>(height));
  VT_REQUIRE(width <= limits.max_side && height <= limits.max_side, ErrorKind::kData,
             "%s of %lld x %lld pixels: a side is over the limit of %lld", format,
             static_cast<long long>(width), static_cast<long long>(height),
             static_cast<long long>(limits.max_side));
  const int64_t pixels = width * height;
  VT_REQUIRE(pixels <= limits.max_pixels && pixels <= limits.max_decoded_bytes / 3, ErrorKind::kData,
             "%s of %lld x %lld pixels would decode to %lld MiB: the limit is %lld pixels and %lld MiB",
             format, static_cast<long long>(width), static_cast<long long>(height),
             static_cast<long long>((pixels * 3) >> 20), static_cast<long long>(limits.max_pixels),
             static_cast<long long>(limits.max_decoded_bytes >> 20));
}

void refuse(const char* format, const std::string& reason) {
  throw Error(ErrorKind::kData, strf("broken %s: %s", format, reason.c_str()),
              "fetch the file again, or open it in an image editor and save it anew");
}

}  // namespace codecs

namespace {

using codecs::Bytes;
using Decoder = Image (*)(Bytes, const DecodeLimits&, DecodeReport&);
using Measure = int64_t (*)(Bytes, const DecodeLimits&);

struct Format {
  const char* name;
  size_t offset;          // position of the magic bytes
  std::string_view mark;  // compared without case when it starts with '<'
  Decoder decoder;        // none: refused by this name
  const char* hint = "convert it to PNG or JPEG first";
  Measure working_bytes = nullptr;
};

using namespace std::string_view_literals;

constexpr const char* kNoImage = "it is no image, whatever its name says; fetch the file again";

constexpr Format kFormats[] = {
    {"JPEG", 0, "\xff\xd8\xff"sv, codecs::decode_jpeg, "", codecs::working_bytes_jpeg},
    {"PNG", 0, "\x89PNG\r\n\x1a\n"sv, codecs::decode_png, "", codecs::working_bytes_png},
    {"WebP", 8, "WEBP"sv, codecs::decode_webp, "", codecs::working_bytes_webp},
    {"a GIF", 0, "GIF8"sv, nullptr},
    {"a BMP", 0, "BM"sv, nullptr},
    {"a TIFF", 0, "II*\0"sv, nullptr},
    {"a TIFF", 0, "MM\0*"sv, nullptr},
    {"a TIFF", 0, "II+\0"sv, nullptr},
    {"an AVIF", 4, "ftypavi"sv, nullptr},
    {"a HEIC", 4, "ftyphe"sv, nullptr},
    {"a HEIC", 4, "ftypmif1"sv, nullptr},
    {"a HEIC", 4, "ftypmsf1"sv, nullptr},
    {"a JPEG XL", 0, "\xff\x0a"sv, nullptr},
    {"a JPEG XL", 0, "\0\0\0\x0cJXL "sv, nullptr},
    {"a JPEG 2000", 0, "\0\0\0\x0cjP  "sv, nullptr},
    {"a Photoshop document", 0, "8BPS"sv, nullptr},
    {"a PDF", 0, "%PDF"sv, nullptr},
    {"a zip archive", 0, "PK\x03\x04"sv, nullptr, "unpack it first"},
    {"a gzip file", 0, "\x1f\x8b"sv, nullptr, "unpack it first"},
    {"a git-lfs pointer", 0, "version https://git-lfs"sv, nullptr, "fetch the file itself: git lfs pull"},
    {"an HTML page", 0, "<!doctype html"sv, nullptr, kNoImage},
    {"an HTML page", 0, "<html"sv, nullptr, kNoImage},
    {"an SVG or XML file", 0, "<?xml"sv, nullptr},
    {"an SVG or XML file", 0, "<svg"sv, nullptr},
};

bool matches(const Format& format, Bytes bytes) {
  const bool text = format.mark[0] == '<';
  size_t at = format.offset;
  while (text && at < bytes.size() && std::isspace(bytes[at])) ++at;
  if (bytes.size() < at + format.mark.size()) return false;
  for (size_t i = 0; i < format.mark.size(); ++i) {
    const int byte = text ? std::tolower(bytes[at + i]) : bytes[at + i];
    if (byte != static_cast<unsigned char>(format.mark[i])) return false;
  }
  return true;
}

const Format& recognise(Bytes bytes) {
  VT_REQUIRE(!bytes.empty(), ErrorKind::kData, "expected a JPEG, PNG or WebP image, found an empty file");
  for (const Format& format : kFormats)
    if (matches(format, bytes)) return format;
  if (looks_like_text(bytes))
    throw Error(ErrorKind::kData, "expected a JPEG, PNG or WebP image, found a text file", kNoImage);
  std::string start;
  for (size_t i = 0; i < bytes.size() && i < 8; ++i) start += strf("%s%02x", i ? " " : "", bytes[i]);
  throw Error(
      ErrorKind::kData,
      strf("expected a JPEG, PNG or WebP image, found an unknown format (it starts with %s)", start.c_str()));
}

}  // namespace

int64_t codecs::working_bytes(Bytes bytes, const DecodeLimits& limits) {
  const Format& format = recognise(bytes);
  return format.working_bytes ? format.working_bytes(bytes, limits) : 0;
}

const std::vector<std::string>& image_endings() {
  static const std::vector<std::string> endings = {"jpg", "jpeg", "png", "webp"};
  return endings;
}

bool is_image_ending(std::string_view ending) {
  const std::vector<std::string>& known = image_endings();
  return std::find(known.begin(), known.end(), lowercase(std::string(ending))) != known.end();
}

bool looks_like_text(std::span<const uint8_t> bytes) {
  constexpr size_t kLook = 256;
  const auto start = bytes.first(std::min(kLook, bytes.size()));
  return !start.empty() && std::none_of(start.begin(), start.end(), [](uint8_t c) {
    return c == 0x7f || (c < 0x20 && !std::isspace(c));
  });
}

Image decode_image(std::span<const uint8_t> bytes, const DecodeLimits& limits, DecodeReport* report) {
  const Format& format = recognise(bytes);
  if (!format.decoder)
    throw Error(ErrorKind::kData, strf("expected a JPEG, PNG or WebP image, found %s", format.name),
                format.hint);
  DecodeReport seen;
  seen.format = format.name;
  Image image = format.decoder(bytes, limits, seen);
  if (report) *report = seen;
  return image;
}

Image load_image(const std::string& path, const DecodeLimits& limits, DecodeReport* report) {
  const std::string content = read_file(path, static_cast<size_t>(limits.max_file_bytes));
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  return with_context(path, [&] { return decode_image(bytes, limits, report); });
}

// 2 to 4 mirror and turn by half; from 5 on rows and columns are exchanged first.
Image turned_upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool exchange = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image out = Image::blank(exchange ? image.width : image.height, exchange ? image.height : image.width,
                           image.channels);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t seen_y = from_below ? out.height - 1 - y : y, seen_x = from_right ? out.width - 1 - x : x;
      const uint8_t* from =
          image.row(exchange ? seen_x : seen_y) + (exchange ? seen_y : seen_x) * image.channels;
      std::copy_n(from, image.channels, out.row(y) + x * image.channels);
    }
  return out;
}

}  // namespace vitrail
