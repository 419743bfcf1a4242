#include "data/sheet.h"

#include <cctype>

#include "base/text.h"
#include "data/decode.h"
#include "data/preprocess.h"

namespace vitrail {

std::string tile_label(const Dataset& data, int64_t index, int64_t side) {
  std::string text;
  for (const int32_t label : data.labels(index))
    text += (text.empty() ? "" : " ") + data.classes()[static_cast<size_t>(label)];
  return lowercase(text).substr(0, static_cast<size_t>(side / (6 * kTileLabelScale)));
}

Image square_tile(const Image& image, int64_t side) {
  PreprocessConfig config;
  config.height = config.width = config.resize = side;
  Image crop = crop_for_display(image, config);
  if (crop.channels == 3) return crop;
  Image rgb = Image::blank(side, side, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) rgb.pixels[i] = crop.pixels[i / 3];
  return rgb;
}

void write_samples(const Dataset& data, const std::vector<int64_t>& samples, const std::string& folder) {
  for (const int64_t index : samples) {
    std::string name = data.labels(index).empty() ? "none" : data.classes()[data.labels(index)[0]];
    name += "-" + data.sample_name(index);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    write_png(folder + "/" + name + ".png", data.load(index, 0));
  }
}

}  // namespace vitrail
