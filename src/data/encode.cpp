// Encodes an image as PNG, in memory or as a file.
#include "data/decode.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"

namespace vitrail {
namespace {

// libpng leaves by longjmp, as in decode_png.cpp, so what must be released lives outside of the jump.
struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const Image* image = nullptr;
  std::vector<uint8_t> bytes;
  char failure[160] = "";

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& writer = *static_cast<Writer*>(png_get_error_ptr(png));
  std::snprintf(writer.failure, sizeof writer.failure, "%s", message);
  png_longjmp(png, 1);
}

// A C++ exception must not propagate through libpng.
bool append(std::vector<uint8_t>& bytes, const uint8_t* from, size_t count) noexcept {
  try {
    bytes.insert(bytes.end(), from, from + count);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void on_write(png_structp png, png_bytep from, size_t count) {
  if (!append(static_cast<Writer*>(png_get_io_ptr(png))->bytes, from, count)) png_error(png, "out of memory");
}

int colour_type(int64_t channels) {
  return channels == 1 ? PNG_COLOR_TYPE_GRAY : channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGBA;
}

void write_all(Writer& writer) {
  const Image& image = *writer.image;
  png_set_write_fn(writer.png, &writer, on_write, nullptr);
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, colour_type(image.channels), PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(writer.png, image.row(y));
  png_write_end(writer.png, nullptr);
}

}  // namespace

std::vector<uint8_t> encode_png(const Image& image) {
  VT_CHECK(image.channels == 1 || image.channels == 3 || image.channels == 4, "%lld channels",
           static_cast<long long>(image.channels));
  VT_CHECK(static_cast<int64_t>(image.pixels.size()) == image.height * image.width * image.channels,
           "%zu bytes of pixels", image.pixels.size());
  Writer writer;
  writer.image = &image;
  writer.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_error, [](png_structp, png_const_charp) {});
  writer.info = writer.png ? png_create_info_struct(writer.png) : nullptr;
  VT_REQUIRE(writer.info, ErrorKind::kMemory, "libpng could not be started: out of memory");
  if (setjmp(png_jmpbuf(writer.png)) == 0)
    write_all(writer);
  else
    throw Error(ErrorKind::kWrite,
                strf("a PNG of %lld x %lld pixels cannot be made: %s", static_cast<long long>(image.width),
                     static_cast<long long>(image.height), writer.failure));
  return std::move(writer.bytes);
}

void write_png(const std::string& path, const Image& image) {
  const std::vector<uint8_t> bytes = with_context(path, [&] { return encode_png(image); });
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace vitrail
