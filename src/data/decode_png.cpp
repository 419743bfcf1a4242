// Decodes PNG by libpng, within limits.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "data/codecs.h"

namespace vitrail::codecs {
namespace {

// libpng leaves by longjmp on errors: its calls happen inside a Step, a function that owns nothing with a
// destructor; what must be released lives here.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes bytes;
  size_t at = 0;
  bool strict = false;
  int64_t warnings = 0;
  char failure[160] = "";
  char first_warning[160] = "";
  uint8_t* pixels = nullptr;

  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

using Step = void (*)(Reader&);

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& reader = *static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader.failure, sizeof reader.failure, "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp png, png_const_charp message) {
  auto& reader = *static_cast<Reader*>(png_get_error_ptr(png));
  if (reader.strict) on_error(png, message);
  if (reader.warnings++ == 0) std::snprintf(reader.first_warning, sizeof reader.first_warning, "%s", message);
}

void on_read(png_structp png, png_bytep target, size_t count) {
  auto& reader = *static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader.bytes.size() - reader.at) png_error(png, "the file ends too early");
  std::memcpy(target, reader.bytes.data() + reader.at, count);
  reader.at += count;
}

void guard(Reader& reader, Step step) {
  if (setjmp(png_jmpbuf(reader.png)) == 0)
    step(reader);
  else
    refuse("PNG", reader.failure);
}

void read_header(Reader& reader) {
  png_structp png = reader.png;
  constexpr png_alloc_size_t kChunkBytes = 8 << 20;
  // check_size refuses sizes with a better message; these limits stop what comes before it.
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(png, kChunkBytes);
  png_set_chunk_cache_max(png, 16);
  // Only IHDR, PLTE, tRNS, IDAT and IEND are read: no text, no profiles, no gamma.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(png, &reader, on_read);
  png_read_info(png, reader.info);
}

void read_pixels(Reader& reader) {
  png_structp png = reader.png;
  png_set_strip_16(png);  // top byte
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_palette_to_rgb(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  const png_uint_32 height = png_get_image_height(png, reader.info);
  const size_t stride = size_t{png_get_image_width(png, reader.info)} * 3;
  if (png_get_rowbytes(png, reader.info) != stride) png_error(png, "rows do not become 8-bit RGB");
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png, reader.pixels + y * stride, nullptr);
  png_read_end(png, nullptr);
}

const char* colour_name(int type) {
  switch (type) {
    case PNG_COLOR_TYPE_GRAY:
      return "grey";
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return "grey+alpha";
    case PNG_COLOR_TYPE_PALETTE:
      return "palette";
    case PNG_COLOR_TYPE_RGB:
      return "rgb";
    default:
      return "rgba";
  }
}

// libpng is set to drop eXIf with the rest, so the chunks are searched here.
int orientation_of(Bytes bytes) {
  constexpr size_t kSignature = 8, kHead = 8, kCrc = 4;
  for (size_t at = kSignature; bytes.size() - at >= kHead;) {
    const uint8_t* head = bytes.data() + at;
    const size_t length = png_get_uint_32(head), left = bytes.size() - at - kHead;
    if (length > left) break;
    if (std::memcmp(head + 4, "eXIf", 4) == 0) return exif_orientation(bytes.subspan(at + kHead, length));
    if (left - length < kCrc) break;
    at += kHead + length + kCrc;
  }
  return 0;
}

// Deflate compresses by at most about 1032 to 1: a file too short for its own header is refused before
// allocation.
void check_density(const Reader& reader, int64_t height) {
  constexpr int64_t kMaxRatio = 1100;
  const auto row_bytes = static_cast<int64_t>(png_get_rowbytes(reader.png, reader.info));
  if (row_bytes * height / kMaxRatio > static_cast<int64_t>(reader.bytes.size()))
    refuse("PNG", strf("%zu bytes cannot hold %lld rows of %lld bytes", reader.bytes.size(),
                       static_cast<long long>(height), static_cast<long long>(row_bytes)));
}

}  // namespace

// IHDR comes first, at a fixed position.
int64_t working_bytes_png(Bytes bytes, const DecodeLimits& limits) {
  constexpr size_t kWidthAt = 16, kHeightAt = 20;
  if (bytes.size() < kHeightAt + 4) refuse("PNG", "the file ends too early");
  const int64_t width = png_get_uint_32(bytes.data() + kWidthAt),
                height = png_get_uint_32(bytes.data() + kHeightAt);
  check_size("PNG", width, height, limits);
  return width * height * 3;
}

Image decode_png(Bytes bytes, const DecodeLimits& limits, DecodeReport& report) {
  Reader reader;
  reader.bytes = bytes;
  reader.strict = limits.strict;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  reader.info = reader.png ? png_create_info_struct(reader.png) : nullptr;
  VT_REQUIRE(reader.info, ErrorKind::kMemory, "libpng could not be started: out of memory");
  guard(reader, read_header);
  const int64_t width = png_get_image_width(reader.png, reader.info);
  const int64_t height = png_get_image_height(reader.png, reader.info);
  check_size("PNG", width, height, limits);
  check_density(reader, height);
  report.colour = colour_name(png_get_color_type(reader.png, reader.info));
  report.bits = png_get_bit_depth(reader.png, reader.info);
  report.exif_orientation = orientation_of(bytes);

  Image image = Image::blank(height, width, 3);
  reader.pixels = image.pixels.data();
  guard(reader, read_pixels);
  report.warnings = reader.warnings;
  report.first_warning = reader.first_warning;
  return image;
}

}  // namespace vitrail::codecs
