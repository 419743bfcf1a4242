#include "data/datasets/formats.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/decode.h"

namespace vitrail {

namespace formats {

Image decode_sample(std::string_view bytes, const std::string& name, int64_t least_side) {
  return with_context(printable(name), [&] {
    DecodeLimits limits = DecodeLimits::for_datasets();
    limits.least_side = least_side;
    DecodeReport report;
    Image image =
        decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, limits, &report);
    if (report.cut_short)
      throw Error(ErrorKind::kData, strf("broken %s: cut short", report.format.c_str()),
                  "fetch the file again");
    return image;
  });
}

bool has_image_ending(std::string_view name) {
  static constexpr std::string_view kRefused[] = {"bmp", "gif", "tif", "tiff", "ppm", "pgm", "avif", "heic"};
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string ending = lowercase(std::string(name.substr(dot + 1)));
  return is_image_ending(ending) ||
         std::find(std::begin(kRefused), std::end(kRefused), ending) != std::end(kRefused);
}

std::string printable(const std::string& name) {
  return is_printable(name) ? name : quoted(name);
}

}  // namespace formats

namespace {

struct Format {
  const char* name;
  const char* place;
  const char* takes;  // what has to lie at that place
  std::unique_ptr<Dataset> (*open)(const std::string& place, Part part);
};

constexpr Format kFormats[] = {
    {"cifar10", "DIR", "the folder of the unpacked archive", formats::open_cifar10},
    {"cifar100", "DIR", "the folder of the unpacked archive", formats::open_cifar100},
    {"folder", "DIR",
     "images in a folder a class, as DIR/CLASS/NAME.jpg (or .jpeg, .png, .webp), at the top or below train "
     "and val; or images and labels.csv",
     formats::open_folder},
    {"idx", "DIR", "the folder of train-images-idx3-ubyte and train-labels-idx1-ubyte", formats::open_idx},
    {"packed", "FILE", "a file that vitrail data pack has written", formats::open_packed},
    {"synthetic", "CxHxWxCLASSESxCOUNT", "a COUNT of at least 1", formats::open_synthetic},
    {"tar", "GLOB", "archives of images with their labels, as NAME.jpg and NAME.cls", formats::open_tar},
};

[[noreturn]] void refuse_spec(const std::string& spec, const std::string& name) {
  std::string known;
  std::vector<std::string> names;
  for (const Format& format : kFormats) {
    known += strf("%s%s:%s", known.empty() ? "" : ", ", format.name, format.place);
    names.emplace_back(format.name);
  }
  const std::string near = nearest_name(name, names);
  const bool bare = name.size() == spec.size();
  throw Error(ErrorKind::kConfig,
              strf("expected data as FORMAT:PLACE (%s), found %s", known.c_str(), quoted(spec).c_str()),
              bare           ? strf("for a folder with a folder of images a class: folder:%s", spec.c_str())
              : near.empty() ? ""
                             : strf("did you mean %s:?", near.c_str()));
}

// Class names are written to JSON, which holds valid text only.
void require_text(const std::string& spec, const std::vector<std::string>& classes) {
  for (const std::string& name : classes)
    if (!is_valid_utf8(name))
      throw Error(
          ErrorKind::kData,
          strf("%s: the class name %s is not UTF-8", formats::printable(spec).c_str(), quoted(name).c_str()),
          "rename that folder or label; convmv -f latin1 -t utf8 -r --notest DIR does it for folders");
}

}  // namespace

std::unique_ptr<Dataset> open_part_if_any(const std::string& spec, Part part) {
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  for (const Format& format : kFormats) {
    if (name != format.name || colon == std::string::npos) continue;
    const std::string place = spec.substr(colon + 1);
    VT_REQUIRE(!place.empty(), ErrorKind::kConfig, "%s names no place: expected %s:%s", spec.c_str(),
               format.name, format.place);
    auto dataset = format.open(place, part);
    if (dataset && dataset->size() == 0)
      throw Error(ErrorKind::kData, strf("%s holds no samples", spec.c_str()),
                  strf("check the path: %s: takes %s", format.name, format.takes));
    if (dataset) require_text(spec, dataset->classes());
    return dataset;
  }
  refuse_spec(spec, name);
}

std::unique_ptr<Dataset> open_dataset(const std::string& spec, Part part) {
  auto dataset = open_part_if_any(spec, part);
  if (!dataset)
    throw Error(ErrorKind::kData, strf("%s has no validation part of its own", spec.c_str()),
                "name one (data.val), or let training split one off (data.val_fraction)");
  return dataset;
}

}  // namespace vitrail
