// Decodes JPEG by libjpeg, within limits and at a fraction of the size where that is enough.
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
// jpeglib.h relies on the two above, jerror.h on jpeglib.h.
#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"
#include "data/codecs.h"

namespace vitrail::codecs {
namespace {

// libjpeg reports errors through callbacks that may not return; they leave by longjmp. So every call into
// it happens inside a Step, a function that owns nothing with a destructor, and all that must be released
// lives here, outside of the jump.
struct Reader {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jmp_buf escape;
  bool created = false;
  bool strict = false, cut_short = false;
  int64_t warnings = 0;
  int64_t scan_limit = 0;
  char failure[JMSG_LENGTH_MAX] = "";
  char first_warning[JMSG_LENGTH_MAX] = "";
  Bytes bytes;
  uint8_t* pixels = nullptr;    // RGB target
  uint8_t* cmyk_row = nullptr;  // one row, for four components only

  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (created) jpeg_destroy_decompress(&cinfo);
  }
};

using Step = void (*)(Reader&);

Reader& reader_of(j_common_ptr cinfo) {
  return *static_cast<Reader*>(cinfo->client_data);
}

[[noreturn]] void leave(j_common_ptr cinfo) {
  Reader& reader = reader_of(cinfo);
  cinfo->err->format_message(cinfo, reader.failure);
  longjmp(reader.escape, 1);
}

void on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;  // a trace, not a warning
  Reader& reader = reader_of(cinfo);
  if (reader.strict) leave(cinfo);
  reader.cut_short |= cinfo->err->msg_code == JWRN_JPEG_EOF;
  if (reader.warnings++ == 0) cinfo->err->format_message(cinfo, reader.first_warning);
}

void on_progress(j_common_ptr cinfo) {
  Reader& reader = reader_of(cinfo);
  const int scan = reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number;
  if (scan <= reader.scan_limit) return;
  std::snprintf(reader.failure, sizeof reader.failure, "more than %lld scans, the limit at this size",
                static_cast<long long>(reader.scan_limit));
  longjmp(reader.escape, 1);
}

void guard(Reader& reader, Step step) {
  if (setjmp(reader.escape) == 0)
    step(reader);
  else
    refuse("JPEG", reader.failure);
}

void read_header(Reader& reader) {
  jpeg_create_decompress(&reader.cinfo);
  reader.created = true;
  jpeg_mem_src(&reader.cinfo, reader.bytes.data(), static_cast<unsigned long>(reader.bytes.size()));
  jpeg_save_markers(&reader.cinfo, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&reader.cinfo, TRUE);
}

// Adobe's programs store CMYK inverted, and Pillow assumes it of every CMYK JPEG: a sample is 255 - ink.
void cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, int64_t width) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const int key = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * key + 128;
      const int covered = ((product >> 8) + product) >> 8;
      rgb[c] = static_cast<uint8_t>(key > covered ? key - covered : 0);
    }
  }
}

// Returns the fraction at which the image is decoded. The DCT of an 8 x 8 block read with fewer coefficients
// gives its low-pass at 1/2, 1/4 or 1/8 of the size. The frequencies left out lie above those that the
// caller's own antialiased shrinking keeps, as both sides stay at least twice the final size. A side that is
// no multiple of the fraction is rounded up, which stretches the image: at most an eighth of a final pixel is
// accepted.
unsigned shrink_of(const jpeg_decompress_struct& cinfo, int64_t least_side) {
  if (least_side <= 0) return 1;
  const int64_t shorter = std::min(cinfo.image_width, cinfo.image_height);
  for (const unsigned shrink : {8u, 4u, 2u}) {
    const int64_t added = std::max((shrink - cinfo.image_width % shrink) % shrink,
                                   (shrink - cinfo.image_height % shrink) % shrink);
    if (shorter / shrink / 2 >= least_side && added * 8 * least_side <= shorter) return shrink;
  }
  return 1;
}

void compute_size(Reader& reader) {
  jpeg_calc_output_dimensions(&reader.cinfo);
}

void read_pixels(Reader& reader) {
  jpeg_decompress_struct& cinfo = reader.cinfo;
  cinfo.out_color_space = cinfo.num_components == 4 ? JCS_CMYK : JCS_RGB;
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&cinfo);
  const size_t stride = size_t{cinfo.output_width} * 3;
  while (cinfo.output_scanline < cinfo.output_height) {
    uint8_t* target = reader.pixels + cinfo.output_scanline * stride;
    JSAMPROW row = reader.cmyk_row ? reader.cmyk_row : target;
    if (jpeg_read_scanlines(&cinfo, &row, 1) == 1 && reader.cmyk_row)
      cmyk_to_rgb(reader.cmyk_row, target, cinfo.output_width);
  }
  jpeg_finish_decompress(&cinfo);
}

int orientation_of(const jpeg_decompress_struct& cinfo) {
  constexpr size_t kSkip = 6;  // "Exif\0\0"
  for (const jpeg_marker_struct* marker = cinfo.marker_list; marker; marker = marker->next)
    if (marker->data_length > kSkip && std::memcmp(marker->data, "Exif\0\0", kSkip) == 0)
      return exif_orientation({marker->data + kSkip, marker->data_length - kSkip});
  return 0;
}

const char* colour_name(J_COLOR_SPACE space) {
  switch (space) {
    case JCS_GRAYSCALE:
      return "grey";
    case JCS_RGB:
      return "rgb";
    case JCS_YCbCr:
      return "ycbcr";
    case JCS_CMYK:
      return "cmyk";
    case JCS_YCCK:
      return "ycck";
    default:
      return "unknown";
  }
}

void prepare(Reader& reader, Bytes bytes, const DecodeLimits& limits) {
  reader.bytes = bytes;
  reader.strict = limits.strict;
  reader.cinfo.err = jpeg_std_error(&reader.errors);
  reader.cinfo.client_data = &reader;
  reader.errors.error_exit = leave;
  reader.errors.emit_message = on_message;
  reader.errors.output_message = [](j_common_ptr) {};
  reader.progress.progress_monitor = on_progress;
}

}  // namespace

int64_t working_bytes_jpeg(Bytes bytes, const DecodeLimits& limits) {
  Reader reader;
  prepare(reader, bytes, limits);
  guard(reader, read_header);
  const jpeg_decompress_struct& cinfo = reader.cinfo;
  check_size("JPEG", cinfo.image_width, cinfo.image_height, limits);
  int64_t total = int64_t{cinfo.image_width} * cinfo.image_height * 3;
  if (!cinfo.progressive_mode) return total;
  for (int i = 0; i < cinfo.num_components; ++i)  // all coefficients, 64 per block
    total += int64_t{cinfo.comp_info[i].width_in_blocks} * cinfo.comp_info[i].height_in_blocks * 64 *
             static_cast<int64_t>(sizeof(JCOEF));
  return total;
}

Image decode_jpeg(Bytes bytes, const DecodeLimits& limits, DecodeReport& report) {
  Reader reader;
  prepare(reader, bytes, limits);
  guard(reader, read_header);
  jpeg_decompress_struct& cinfo = reader.cinfo;
  check_size("JPEG", cinfo.image_width, cinfo.image_height, limits);
  VT_REQUIRE(cinfo.num_components == 1 || cinfo.num_components == 3 || cinfo.num_components == 4,
             ErrorKind::kData, "JPEG of %d components: 1 (grey), 3 (colour) or 4 (CMYK) can be read",
             cinfo.num_components);
  report.colour = colour_name(cinfo.jpeg_color_space);
  report.exif_orientation = orientation_of(cinfo);

  // A few bytes can request another pass over the whole image: the larger it is, the fewer are allowed.
  constexpr int64_t kScansAtFullSize = 20;
  const int64_t pixels = int64_t{cinfo.image_width} * cinfo.image_height;
  reader.scan_limit = std::min(limits.max_scans, kScansAtFullSize * limits.max_pixels / pixels);
  cinfo.progress = &reader.progress;
  // A progressive image keeps all coefficients (2 bytes each) beside the pixels.
  cinfo.mem->max_memory_to_use = static_cast<long>(2 * limits.max_decoded_bytes);

  cinfo.scale_num = 1;
  cinfo.scale_denom = shrink_of(cinfo, limits.least_side);
  guard(reader, compute_size);
  Image image = Image::blank(cinfo.output_height, cinfo.output_width, 3);
  std::vector<uint8_t> cmyk_row(cinfo.num_components == 4 ? size_t{cinfo.output_width} * 4 : 0);
  reader.pixels = image.pixels.data();
  reader.cmyk_row = cmyk_row.empty() ? nullptr : cmyk_row.data();
  guard(reader, read_pixels);
  report.cut_short = reader.cut_short;
  report.warnings = reader.warnings;
  report.first_warning = reader.first_warning;
  return image;
}

}  // namespace vitrail::codecs
