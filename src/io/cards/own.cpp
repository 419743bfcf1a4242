// Vitrail's own block of a config.json, read and written; the facts of an architecture's name; labels.
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "models/zoo.h"

namespace vitrail {

StatedConfig read_vitrail_config(const Json& root, const std::string& origin) {
  const Json* block = json_find(root, "vitrail");
  VT_REQUIRE(block, ErrorKind::kConfig, "%s: no \"vitrail\" block", origin.c_str());
  StatedConfig stated{.origin = origin + " (vitrail)"};
  if (!block->is_object()) wrong_type(origin, "vitrail", *block, "an object");
  for (const auto& [key, value] : block->items())
    VT_REQUIRE(key == "model" || key == "preprocess" || key == "scores", ErrorKind::kConfig,
               "%s: unknown key '%s' in vitrail; expected model, preprocess or scores", origin.c_str(),
               key.c_str());
  if (const Json* model = json_find(*block, "model")) {
    VitConfig scratch;
    from_json(*model, stated.origin, &scratch);
    stated.model = *model;
  }
  if (const Json* preprocess = json_find(*block, "preprocess")) {
    PreprocessConfig config;
    from_json(*preprocess, stated.origin, &config);
    stated.preprocess = config;
  }
  if (const Json* scores = json_find(*block, "scores"))
    json_assign(*scores, stated.origin, "scores", &stated.scores.emplace());
  stated.labels = read_labels(root, origin);
  return stated;
}

// Softmax is the default and is not written, which keeps the block as earlier versions read it.
Json vitrail_block(const ModelCard& card) {
  Json block = {{"model", to_json(card.config)}, {"preprocess", to_json(card.preprocess)}};
  if (card.scores != ScoreKind::kSoftmax) block["scores"] = enum_name(card.scores);
  return block;
}

StatedConfig architecture_config(const std::string& name, Dialect dialect) {
  const ZooEntry& entry = find_architecture(name);
  StatedConfig stated{.origin = "architecture " + entry.config.arch, .model = to_json(entry.config)};
  stated.model.erase("classes");  // the head is what fine-tuning replaces most often
  if (entry.config.pool == Pool::kCls) stated.model.erase("pool");
  if (dialect != Dialect::kTimm)
    for (const char* field : {"norm_eps", "activation", "gelu", "pos_resize"}) stated.model.erase(field);
  stated.preprocess = entry.preprocess;
  if (name.starts_with("deit_"))
    stated.images_origin =
        strf("%s (timm's preprocessing; DeiT's own evaluation resizes to %lld)", stated.origin.c_str(),
             static_cast<long long>(entry.config.image_height * 256 / 224));
  return stated;
}

std::vector<std::string> read_labels(const Json& root, const std::string& origin) {
  const Json* table = json_find(root, "id2label");
  if (!table) return {};
  if (!table->is_object()) wrong_type(origin, "id2label", *table, "an object");
  std::vector<std::string> labels(table->size());
  bool synthetic = true;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto at = table->find(std::to_string(i));
    VT_REQUIRE(at != table->end(), ErrorKind::kConfig, "%s: id2label has %zu entries but none for class %zu",
               origin.c_str(), labels.size(), i);
    labels[i] = json_label(*at, origin, "id2label");
    synthetic = synthetic && labels[i] == "LABEL_" + std::to_string(i);
  }
  if (synthetic) labels.clear();
  return labels;
}

void read_label_names(const Json& object, const char* key, const char* file, StatedConfig* stated) {
  const Json* names = json_find(object, key);
  if (!names) return;
  stated->labels.clear();
  if (names->is_array()) {
    for (const Json& name : *names) stated->labels.push_back(json_label(name, file, key));
    return;
  }
  if (!names->is_object()) wrong_type(file, key, *names, "a list of names or an object of them by number");
  const int64_t classes = std::clamp<int64_t>(stated->model.value("classes", int64_t{0}), 0, 1 << 22);
  for (int64_t i = 0; i < classes; ++i)
    stated->labels.push_back(strf("class %lld", static_cast<long long>(i)));
  for (const auto& [number, name] : names->items()) {
    size_t at = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), at);
    VT_REQUIRE(error == std::errc() && end == number.data() + number.size() && at < stated->labels.size(),
               ErrorKind::kConfig, "%s: %s has the key %s; expected numbers of the %lld classes", file, key,
               quoted(number).c_str(), static_cast<long long>(classes));
    stated->labels[at] = json_label(name, file, key);
  }
}

PreprocessConfig at_size(PreprocessConfig p, int64_t height, int64_t width,
                         std::optional<Interpolation> square) {
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  const ResizeSides crop = crop_sides(p);
  if (p.crop_pct > 0 && p.resize > 0) {
    p.resize = side_before_crop(shorter, p.crop_pct);
    p.resize_longer = height == width ? 0 : side_before_crop(longer, p.crop_pct);
    const bool even = p.resize_longer == 0 || p.resize_longer == p.resize;
    if (p.mode == ResizeMode::kShorterSide && p.resampler == Resampler::kPillow)
      p.interpolation = even ? square.value_or(p.interpolation) : Interpolation::kBilinear;
  } else {
    p.resize = p.resize * shorter / std::min(crop.height, crop.width);
    p.resize_longer = p.resize_longer * longer / std::max(crop.height, crop.width);
  }
  p.height = height;
  p.width = width;
  p.pad_rows = p.pad_columns = 0;
  return p;
}

void validate(const PreprocessConfig& p, const VitConfig& config) {
  constexpr int64_t kMost = 1 << 16;
  const auto ll = [](int64_t v) { return static_cast<long long>(v); };
  VT_REQUIRE(p.height >= 1 && p.height <= kMost && p.width >= 1 && p.width <= kMost, ErrorKind::kConfig,
             "preprocess: height x width is %lld x %lld; each must be between 1 and %lld", ll(p.height),
             ll(p.width), ll(kMost));
  VT_REQUIRE(p.resize >= 0 && p.resize <= kMost, ErrorKind::kConfig,
             "preprocess: resize is %lld; it must be between 0 and %lld", ll(p.resize), ll(kMost));
  VT_REQUIRE(p.resize_longer >= 0 && p.resize_longer <= kMost, ErrorKind::kConfig,
             "preprocess: resize_longer is %lld; it must be between 0 and %lld", ll(p.resize_longer),
             ll(kMost));
  VT_REQUIRE(p.crop_pct == 0 || (p.crop_pct >= kLeastCropPct && p.crop_pct <= kMostCropPct),
             ErrorKind::kConfig, "preprocess: crop_pct is %g; it must be 0 or between %g and %g", p.crop_pct,
             kLeastCropPct, kMostCropPct);
  VT_REQUIRE(p.pad_rows >= 0 && p.pad_rows < p.height && p.pad_columns >= 0 && p.pad_columns < p.width,
             ErrorKind::kConfig, "preprocess: pad_rows x pad_columns is %lld x %lld of %lld x %lld pixels",
             ll(p.pad_rows), ll(p.pad_columns), ll(p.height), ll(p.width));
  const ResizeSides sides = crop_sides(p);
  const int64_t crop = std::min(sides.height, sides.width);
  VT_REQUIRE(p.crop_pct == 0 || p.resize == side_before_crop(crop, p.crop_pct), ErrorKind::kConfig,
             "preprocess: resize %lld is not the crop's %lld / crop_pct %g, rounded down; say crop_pct 0",
             ll(p.resize), ll(crop), p.crop_pct);
  VT_REQUIRE(p.height == config.image_height && p.width == config.image_width, ErrorKind::kConfig,
             "preprocess gives %lld x %lld pixels but the model takes %lld x %lld", ll(p.height), ll(p.width),
             ll(config.image_height), ll(config.image_width));
  const auto channels = static_cast<size_t>(config.channels);
  VT_REQUIRE(p.mean.size() == channels && p.std.size() == channels, ErrorKind::kConfig,
             "preprocess: mean has %zu and std %zu numbers for %zu channels", p.mean.size(), p.std.size(),
             channels);
  constexpr double kLargest = 1e6;  // beyond it no number makes sense for pixels between 0 and 1
  for (double value : p.mean)
    VT_REQUIRE(std::fabs(value) <= kLargest, ErrorKind::kConfig,
               "preprocess: mean holds %g; it must be between %g and %g", value, -kLargest, kLargest);
  for (double value : p.std)
    VT_REQUIRE(value >= 1 / kLargest && value <= kLargest, ErrorKind::kConfig,
               "preprocess: std holds %g; it must be between %g and %g", value, 1 / kLargest, kLargest);
}

}  // namespace vitrail
