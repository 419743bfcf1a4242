// The geometry of image processors that have ways of their own, by the modes in data/preprocess.h that follow
// them. What these cannot express is refused by the key that says it.
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "io/cards/hf_images.h"
#include "io/config_json.h"

namespace vitrail::hf_rows {

namespace {

// Reads {"shortest_edge": 32}, or the number 32 where that means it.
int64_t edge_of(const Json& images, const Row& row, const char* key, const char* edge, bool may_be_number) {
  const Json* value = json_find(images, key);
  if (!value) return row.size;
  if (value->is_number() && may_be_number) return number_of(images, key, row.size, 1);
  if (!value->is_object() || !json_find(*value, edge)) refuse_beyond(row, images, key);
  return number_of(*value, edge, row.size, 1);
}

// The level of a border is computed of the mean as it was given.
void require_usual_scale(const Json& images, const Row& row) {
  const Json* factor = json_find(images, "rescale_factor");
  if (factor && std::abs(255 * json_number(*factor, kImages, "rescale_factor") - 1) > 1e-6)
    refuse_beyond(row, images, "rescale_factor");
}

void require_border_of_mean(const Json& images, const Row& row, const PreprocessConfig& p) {
  const Json* colour = json_find(images, "background_color");
  const std::vector<double> levels =
      colour ? json_numbers(*colour, kImages, "background_color") : std::vector<double>(p.mean.size(), 127);
  bool same = levels.size() == p.mean.size();
  for (size_t c = 0; same && c < levels.size(); ++c) same = levels[c] == std::trunc(255 * p.mean[c]);
  if (!same) refuse_beyond(row, images, "background_color");
}

void set_sides(const HfSide& crop, ResizeMode mode, int64_t resize, int64_t other, PreprocessConfig* p) {
  p->height = crop.height;
  p->width = crop.width;
  p->mode = mode;
  p->resize = resize;
  p->resize_longer = other;
  p->odd_margin = OddMargin::kHalfEven;
}

}  // namespace

// BridgeTower, ViLT and TextNet. Without a crop only images that come out square fit a model of one size.
void read_divided(const Json& images, const Row& row, StatedConfig* stated, PreprocessConfig* p) {
  const bool up = row.ways == Ways::kShorterUp;
  const int64_t edge = edge_of(images, row, "size", "shortest_edge", true),
                multiple = number_of(images, "size_divisor", 32, 1);
  const int64_t side = up ? round_up(edge, multiple) : edge / multiple * multiple;
  if (side == 0) refuse_beyond(row, images, "size");
  const bool crops = !has(row, kNeverCrops) && flag(images, "do_center_crop", has(row, kCrops));
  if (!crops) {
    stretch_to({side, side}, p);
  } else if (up) {
    set_sides(side_of(images, "crop_size", 224), ResizeMode::kShorterUp, edge, multiple, p);
  } else {
    const int64_t crop = edge_of(images, row, "crop_size", "shortest_edge", false);
    set_sides({crop, crop}, ResizeMode::kShorterDown, edge, multiple, p);
  }
  if (crops) p->odd_margin = OddMargin::kDown;
  settle_resize(images, crops, stated, p);
}

// Perceiver.
void read_centre(const Json& images, const Row& row, PreprocessConfig* p) {
  const HfSide size = side_of(images, "size", row.size);
  if (!flag(images, "do_center_crop", true)) return stretch_to(size, p);
  const HfSide whole = side_of(images, "crop_size", 256);
  if (size.height > whole.height || size.width > whole.width) refuse_beyond(row, images, "crop_size");
  set_sides(size, ResizeMode::kCropStretch, 0, 0, p);
  set_resize_sides({whole.height, whole.width}, p);
}

// Janus and the two of DeepSeek's.
void read_square(const Json& images, const Row& row, PreprocessConfig* p) {
  require_usual_scale(images, row);
  HfSide size = side_of(images, "size", row.size);
  int64_t least = 0;
  if (row.ways == Ways::kGreySquare) {
    require_border_of_mean(images, row, *p);
    size.height = size.width =
        flag(images, "crop_to_patches", true) ? size.height : number_of(images, "tile_size", 768, 1);
  } else {
    least = number_of(images, "min_size", 14, 0);
    if (least > size.height) refuse_beyond(row, images, "min_size");
  }
  if (size.height != size.width) refuse_beyond(row, images, "size");
  set_sides(size, ResizeMode::kSquare, size.height, least, p);
}

// SAM.
void read_corner(const Json& images, const Row& row, PreprocessConfig* p) {
  const int64_t edge = edge_of(images, row, "size", "longest_edge", false);
  const HfSide padded = side_of(images, "pad_size", row.size);
  if (edge > padded.height || edge > padded.width) refuse_beyond(row, images, "pad_size");
  set_sides(padded, ResizeMode::kCorner, edge, 0, p);
}

// Donut, which takes a list as width and height, and the nearest pixel for no choice.
void read_thumbnail(const Json& images, const Row& row, PreprocessConfig* p) {
  HfSide size = side_of(images, "size", row.size);
  if (const Json* list = json_find(images, "size"); list && list->is_array())
    std::swap(size.height, size.width);
  if (p->interpolation == Interpolation::kNearest) refuse_beyond(row, images, "resample");
  set_sides(size, ResizeMode::kThumbnail, 0, 0, p);
}

}  // namespace vitrail::hf_rows
