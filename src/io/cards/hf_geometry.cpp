// Resize, crop and padding as preprocessor_config.json says.
#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "io/cards/hf_images.h"
#include "io/config_json.h"

namespace vitrail::hf_rows {

namespace {

// Returns whether sizes are divided by crop_pct: null says that they are not.
bool has_crop_pct(const Json& images, const Row& row) {
  const auto at = images.find("crop_pct");
  return row.ways == Ways::kCropPct && (at == images.end() || !at->is_null());
}

// The shortest edge that images are resized to where the config names `edge`.
int64_t resized_edge(const Json& images, const Row& row, int64_t edge) {
  const auto share = [&](double otherwise) {
    const Json* pct = json_find(images, "crop_pct");
    const double crop = pct ? json_number(*pct, kImages, "crop_pct") : otherwise;
    VT_REQUIRE(crop >= kLeastCropPct && crop <= kMostCropPct, ErrorKind::kConfig,
               "%s: crop_pct is %g; it must be between %g and %g", kImages, crop, kLeastCropPct,
               kMostCropPct);
    return static_cast<int64_t>(static_cast<double>(edge) / crop);
  };
  if (row.ways == Ways::kMargin) return static_cast<int64_t>(256.0 / 224.0 * static_cast<double>(edge));
  if (has_crop_pct(images, row)) return share(0.9);
  return row.ways == Ways::kConvNext ? share(224.0 / 256.0) : edge;
}

// Returns whether a size is a height and a width.
bool is_sides(const Json* size) {
  return size && (size->is_array() || (json_find(*size, "height") && json_find(*size, "width")));
}

HfSide resized_to(const Json& images, const Row& row, const PreprocessConfig& p, ResizeMode* mode) {
  const Json* size = json_find(images, "size");
  if (has(row, kSidesOnly) && !is_sides(size)) refuse_beyond(row, images, "size");
  const bool number_is_edge = !flag(images, "default_to_square", !has(row, kEdge));
  const bool keeps = number_is_edge && (size || has(row, kCrops));
  *mode = keeps ? ResizeMode::kShorterSide : ResizeMode::kStretchCrop;
  if (!size) return {p.height * row.size / 224, p.width * row.size / 224};
  const Json *edge = json_find(*size, "shortest_edge"), *longest = json_find(*size, "longest_edge"),
             *height = json_find(*size, "max_height"), *width = json_find(*size, "max_width");
  if (edge) {
    const int64_t side = json_int(*edge, kImages, "size");
    const bool most = longest && (row.ways == Ways::kPlain || row.ways == Ways::kTwice ||
                                  (row.ways == Ways::kCropPct && !has_crop_pct(images, row)));
    *mode = most ? ResizeMode::kShorterMost : ResizeMode::kShorterSide;
    return {side, most ? json_int(*longest, kImages, "size") : side};
  }
  if (height && width) {
    *mode = ResizeMode::kWithin;
    return {json_int(*height, kImages, "size"), json_int(*width, kImages, "size")};
  }
  const HfSide side = read_side(*size, kImages, "size");
  const bool divided = has_crop_pct(images, row);
  if (divided && side.height == side.width) {
    *mode = ResizeMode::kShorterSide;
    return side;
  }
  if (size->is_number()) return side;
  *mode = ResizeMode::kStretchCrop;
  if (!divided) return side;
  return {resized_edge(images, row, side.height), resized_edge(images, row, side.width)};
}

// ConvNext's processor crops to the edge it is told, or stretches to it where that is 384 or more.
bool crop_to_edge(const HfSide& edge, PreprocessConfig* p) {
  VT_REQUIRE(p->mode == ResizeMode::kShorterSide, ErrorKind::kData,
             "%s: ConvNextImageProcessor needs a shortest_edge as its size", kImages);
  p->height = p->width = edge.height;
  if (edge.height < 384) return true;
  p->mode = ResizeMode::kStretchCrop;
  return false;
}

bool crops_at_all(const Json& images, const Row& row) {
  return !has(row, kNeverCrops) && flag(images, "do_center_crop", has(row, kCrops));
}

// Sets the crop of `p`, or what images are resized to where there is none; returns whether there is one.
bool read_crop(const Json& images, const Row& row, const HfSide& resized, PreprocessConfig* p) {
  if (row.ways == Ways::kConvNext) return crop_to_edge(resized, p);
  const bool crops = crops_at_all(images, row);
  const Json* crop = json_find(images, "crop_size");
  if (crops && !crop) return true;
  if (!crops && p->mode == ResizeMode::kShorterSide) return false;
  if (!crops && p->mode != ResizeMode::kStretchCrop)
    wrong_type(kImages, "size", images.at("size"), "height and width, or shortest_edge alone");
  const HfSide cropped = crops ? read_side(*crop, kImages, "crop_size") : resized;
  p->height = cropped.height;
  p->width = cropped.width;
  return crops;
}

// Returns the sides as a processor rounds them; those that DPT's would change are refused.
HfSide in_multiples(const Json& images, const Row& row, const HfSide& side) {
  if (std::max(side.height, side.width) > 1 << 16) return side;  // refused later
  if (row.ways == Ways::kMultipleUp) {
    const int64_t multiple = number_of(images, "size_divisor", 32, 0);
    return multiple == 0 ? side : HfSide{round_up(side.height, multiple), round_up(side.width, multiple)};
  }
  if (row.ways == Ways::kMultiple) {
    const auto require_multiple = [&](const char* key) {
      const int64_t multiple = number_of(images, key, 1, 1);
      if (side.height % multiple != 0 || side.width % multiple != 0) refuse_beyond(row, images, key);
    };
    require_multiple("ensure_multiple_of");
    if (flag(images, "do_pad", false)) require_multiple("size_divisor");
  }
  return side;
}

void crop_alone(PreprocessConfig* p) {
  p->mode = ResizeMode::kNone;
  p->resize = p->resize_longer = 0;
  p->odd_margin = OddMargin::kDown;
}

// Crops images as they are, where the config says so; returns whether it does.
bool read_bare_crop(const Json& images, const Row& row, PreprocessConfig* p) {
  if (row.ways == Ways::kConvNext || !crops_at_all(images, row) || flag(images, "do_resize", true))
    return false;
  crop_alone(p);
  return read_crop(images, row, {}, p);
}

// Returns whether images are cropped.
bool read_usual(const Json& images, const Row& row, StatedConfig* stated, PreprocessConfig* p) {
  if (read_bare_crop(images, row, p)) return true;
  HfSide resized = in_multiples(images, row, resized_to(images, row, *p, &p->mode));
  const bool crops = read_crop(images, row, resized, p);
  if (p->mode == ResizeMode::kShorterSide) {
    VT_REQUIRE(resized.height == resized.width, ErrorKind::kData, "%s: %sImageProcessor needs one size",
               kImages, row.name);
    resized.height = resized.width = resized_edge(images, row, resized.height);
  }
  // Without a crop only square images come out square, and only the model's size is accepted.
  VT_REQUIRE(
      crops || p->mode != ResizeMode::kShorterSide || (resized.height == p->height && p->height == p->width),
      ErrorKind::kData,
      "%s: images are resized to a shortest edge of %lld and not cropped, the model takes %lld x %lld",
      kImages, static_cast<long long>(resized.height), static_cast<long long>(p->height),
      static_cast<long long>(p->width));
  set_resize_sides({resized.height, resized.width}, p);
  p->odd_margin = OddMargin::kDown;
  if (p->mode == ResizeMode::kStretchCrop && resized.height == p->height && resized.width == p->width)
    stretch_to(resized, p);
  settle_resize(images, crops, stated, p);
  return crops;
}

// Pads the crop at the bottom and at the right, after it was normalised.
void read_padding(const Json& images, const Row& row, bool crops, PreprocessConfig* p) {
  const bool pads = has(row, kPadsAlways) || flag(images, "do_pad", has(row, kPadsUsually));
  if (!has(row, kPads) || !pads || !json_find(images, "pad_size")) return;
  const HfSide side = side_of(images, "pad_size", 0);
  const int64_t rows = side.height - p->height, columns = side.width - p->width;
  const bool same_size = crops || (p->mode == ResizeMode::kStretch && flag(images, "do_resize", true));
  if (rows < 0 || columns < 0 || !same_size) refuse_beyond(row, images, "pad_size");
  p->pad_rows = rows;
  p->pad_columns = columns;
  p->height = side.height;
  p->width = side.width;
}

}  // namespace

void stretch_to(const HfSide& side, PreprocessConfig* p) {
  p->height = side.height;
  p->width = side.width;
  p->mode = ResizeMode::kStretch;
  p->resize = p->resize_longer = 0;
  p->odd_margin = OddMargin::kHalfEven;
}

void settle_resize(const Json& images, bool crops, StatedConfig* stated, PreprocessConfig* p) {
  if (flag(images, "do_resize", true)) return;
  if (crops) return crop_alone(p);
  // transformers then takes images of the model's size alone.
  stated->notes.push_back("preprocessor_config.json says not to resize; images are resized all the same");
}

HfSide side_of(const Json& images, const char* key, int64_t usual) {
  const Json* value = json_find(images, key);
  const HfSide side = value ? read_side(*value, kImages, key) : HfSide{usual, usual};
  for (const int64_t length : {side.height, side.width})
    VT_REQUIRE(length >= 1 && length <= 1 << 16, ErrorKind::kData, "%s: %s has a side of %lld", kImages, key,
               static_cast<long long>(length));
  return side;
}

int64_t number_of(const Json& images, const char* key, int64_t usual, int64_t least) {
  const Json* value = json_find(images, key);
  const int64_t number = value ? json_int(*value, kImages, key) : usual;
  VT_REQUIRE(number >= least && number <= 1 << 16, ErrorKind::kData,
             "%s: %s is %lld; it must be between %lld and %d", kImages, key, static_cast<long long>(number),
             static_cast<long long>(least), 1 << 16);
  return number;
}

void read_geometry(const Json& images, const Row& row, StatedConfig* stated, PreprocessConfig* p) {
  switch (row.ways) {
    case Ways::kShorterUp:
    case Ways::kShorterDown:
      return read_divided(images, row, stated, p);
    case Ways::kCropFirst:
      return read_centre(images, row, p);
    case Ways::kSquare:
    case Ways::kGreySquare:
      return read_square(images, row, p);
    case Ways::kCorner:
      return read_corner(images, row, p);
    case Ways::kThumbnail:
      return read_thumbnail(images, row, p);
    default:
      read_padding(images, row, read_usual(images, row, stated, p), p);
  }
}

}  // namespace vitrail::hf_rows
