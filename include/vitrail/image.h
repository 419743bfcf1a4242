/// \file
/// Images as they are given to a model: files, encoded bytes, pixels in memory, or tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/export.h"

namespace vitrail {

/// A view of one image in any of four forms. The memory it refers to must live until the call that receives
/// the view returns. Making a view checks nothing; the call that uses it does, and throws Error with kData
/// (an image that cannot be read or decoded) or kUsage (no image at all, a path with a NUL, invalid sizes and
/// strides).
class VITRAIL_API ImageView {
 public:
  /// A JPEG, PNG or WebP file; a path is an image wherever one is expected.
  ImageView(std::string path);
  ImageView(const char* path);
  /// The same by name.
  static ImageView file(std::string path);
  /// The bytes of such a file.
  static ImageView encoded(std::span<const uint8_t> bytes);
  /// 8-bit pixels, row by row, interleaved [height, width, channels]: 1 channel (grey), 3 (RGB) or 4 (RGBA,
  /// whose alpha is ignored). `row_stride` is the distance of two rows in bytes; 0: rows are contiguous.
  static ImageView pixels(std::span<const uint8_t> bytes, int64_t height, int64_t width, int64_t channels = 3,
                          int64_t row_stride = 0);
  /// The input of a model, already preprocessed: planar [channels, height, width] as the model expects it.
  static ImageView tensor(std::span<const float> values);
  /// `count` such inputs, one after the other: [count, channels, height, width]. Throws Error(kUsage) where
  /// the values are no multiple of `count`.
  static std::vector<ImageView> tensors(std::span<const float> values, int64_t count);

  /// The form in which the image is given.
  enum class Form { kFile, kEncoded, kPixels, kTensor };
  Form form() const { return form_; }                        ///< which of the others mean something
  const std::string& path() const { return path_; }          ///< of a file
  std::span<const uint8_t> bytes() const { return bytes_; }  ///< of an encoded image or of pixels
  std::span<const float> values() const { return values_; }  ///< of a tensor
  int64_t height() const { return height_; }                 ///< rows of pixels; 0 of other forms
  int64_t width() const { return width_; }                   ///< columns of pixels; 0 of other forms
  int64_t channels() const { return channels_; }             ///< of pixels; 0 of other forms
  int64_t row_stride() const { return row_stride_; }         ///< of pixels, in bytes, as given

 private:
  ImageView() = default;

  Form form_ = Form::kFile;
  std::string path_;
  std::span<const uint8_t> bytes_;
  std::span<const float> values_;
  int64_t height_ = 0, width_ = 0, channels_ = 0, row_stride_ = 0;
};

}  // namespace vitrail
