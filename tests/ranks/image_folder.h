// Images of three classes in a folder, some of them cut short: for runs on ranks that skip, weigh or count
// them.
#pragma once

#include <set>

#include "data/decode.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

// A third of the images each of three classes, or with `uneven` a sixth, a third and a half.
inline std::string image_folder(const WorkFolder& work, const std::set<int>& broken = {},
                                bool uneven = false) {
  for (int i = 0; i < 48; ++i) {
    Image image = Image::blank(8, 8, 3);
    for (size_t at = 0; at < image.pixels.size(); ++at)
      image.pixels[at] = static_cast<uint8_t>((i % 3) * 60 + static_cast<int>(at) * (i + 3) % 50);
    const int label = !uneven ? i % 3 : i % 6 == 0 ? 0 : i % 6 < 3 ? 1 : 2;
    const std::string folder = work / strf("images/train/class%d", label);
    std::filesystem::create_directories(folder);
    std::vector<uint8_t> png = encode_png(image);
    if (broken.contains(i)) png.resize(png.size() / 2);
    write_file(strf("%s/%02d.png", folder.c_str(), i),
               {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  return "folder:" + (work / "images");
}

// The same with two labels each, and none for a quarter of them.
inline std::string labelled_folder(const WorkFolder& work) {
  std::string sheet = "filename,red,blue\n";
  std::filesystem::create_directory(work / "labelled");
  for (int i = 0; i < 44; ++i) {
    const bool red = i & 1, blue = i & 2;
    Image image = Image::blank(8, 8, 3);
    for (size_t at = 0; at < image.pixels.size(); ++at)
      image.pixels[at] = static_cast<uint8_t>(((at % 3 == 0 && red) || (at % 3 == 2 && blue) ? 180 : 60) +
                                              static_cast<int>(at) * (i + 5) % 41);
    write_png(work / ("labelled/" + std::to_string(i) + ".png"), image);
    sheet += std::to_string(i) + ".png," + (red ? "1," : "0,") + (blue ? "1\n" : "0\n");
  }
  write_file(work / "labelled/labels.csv", sheet);
  return "folder:" + (work / "labelled");
}

}  // namespace vitrail::testing
