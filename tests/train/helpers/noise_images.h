// Folders of images of noise, each known by its number: equal numbers are equal bytes, whatever the file is
// called.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/rng.h"
#include "data/decode.h"

namespace vitrail::testing {

inline std::string noise_image(int64_t number) {
  Image image = Image::blank(8, 8, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(counter_hash(static_cast<uint64_t>(number), i));
  const std::vector<uint8_t> png = encode_png(image);
  return {png.begin(), png.end()};
}

// Writes the images first..first+count-1 into the classes a and b by turns; returns "folder:FOLDER".
inline std::string noise_folder(const std::string& folder, int64_t first, int64_t count,
                                const std::string& prefix = "") {
  for (int64_t number = first; number < first + count; ++number) {
    const std::string place = folder + (number % 2 ? "/a/" : "/b/");
    std::filesystem::create_directories(place);
    write_file(place + prefix + std::to_string(number) + ".png", noise_image(number));
  }
  return "folder:" + folder;
}

}  // namespace vitrail::testing
