#include "io/cards/card_text.h"

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "models/zoo.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

template <typename T>
ordered_json field_json(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return enum_name(value);
  else
    return value;
}

template <typename Config, typename Visit>
ordered_json fields_json(const Config& config, Visit visit) {
  ordered_json json = ordered_json::object();
  visit(config, [&](const char* name, const auto& value, const char*) { json[name] = field_json(value); });
  return json;
}

ordered_json config_json(const VitConfig& config) {
  return fields_json(config, [](auto& c, auto&& v) { visit_fields(c, v); });
}
ordered_json preprocess_json(const PreprocessConfig& config) {
  return fields_json(config, [](auto& c, auto&& v) { visit_preprocess_fields(c, v); });
}

std::string channel_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + strf("%g", value);
  return text;
}

void append_differences(const ordered_json& a, const ordered_json& b, std::vector<std::string>& out) {
  for (const auto& [name, value] : a.items())
    if (b.at(name) != value) out.push_back(name + ": " + json_text(value) + " and " + json_text(b.at(name)));
}
std::string resize_text(const PreprocessConfig& p) {
  const ResizeSides crop = crop_sides(p), sides = resize_sides(p);
  const auto n = [](int64_t side) { return static_cast<long long>(side); };
  const std::string target = strf("%lld x %lld", n(crop.height), n(crop.width)),
                    before = strf("%lld x %lld", n(sides.height), n(sides.width));
  switch (p.mode) {
    case ResizeMode::kStretch:
      return "stretched to " + target;
    case ResizeMode::kStretchCrop:
      return "stretched to " + before + ", centre crop " + target;
    case ResizeMode::kNone:
      return "as large as they are, centre crop " + target;
    case ResizeMode::kLongerSide:
    case ResizeMode::kWithin:
      return "within " + before + ", centre crop or borders " + target;
    case ResizeMode::kShorterSide:
      return strf("shorter side to %lld, centre crop ", n(std::min(sides.height, sides.width))) + target;
    case ResizeMode::kShorterMost:
      return strf("shorter side to %lld, longer to %lld at most, centre crop ", n(sides.height),
                  n(sides.width)) +
             target;
    case ResizeMode::kCropStretch:
      return "centre crop as " + target + " of " + before + ", stretched to " + target;
    case ResizeMode::kShorterDown:
    case ResizeMode::kShorterUp:
      return strf("shorter side to %lld, in multiples of %lld, centre crop ", n(p.resize),
                  n(p.resize_longer)) +
             target;
    case ResizeMode::kSquare:
      return strf("longer side to %lld, borders ", n(p.resize)) + target;
    case ResizeMode::kCorner:
      return strf("longer side to %lld, at the top left of ", n(p.resize)) + target;
    case ResizeMode::kThumbnail:
      return "shorter side, then longer one, to borders " + target;
  }
  return "";
}

}  // namespace

std::string architecture_text(const VitConfig& c) {
  const std::string shape =
      strf("width %lld, %s, %s, MLP %lld, patch %lld", static_cast<long long>(c.width),
           format_count(c.depth, "block").c_str(), format_count(c.heads, "head").c_str(),
           static_cast<long long>(c.mlp), static_cast<long long>(c.patch));
  return c.arch.empty() ? "ViT, " + shape : c.arch + " (" + shape + ")";
}

std::string numerics_text(const VitConfig& c) {
  const std::string act = c.activation == ActKind::kGelu ? strf("GELU %s", enum_name(c.gelu))
                                                         : strf("activation %s", enum_name(c.activation));
  constexpr const char* kNorms[] = {"layernorm", "RMSNorm", "SimpleNorm"};
  return strf("%s epsilon %g, %s, positions %s, resized as %s does", kNorms[static_cast<size_t>(c.norm)],
              c.norm_eps, act.c_str(), enum_name(c.pos), enum_name(c.pos_resize));
}

std::string preprocess_text(const PreprocessConfig& p) {
  const std::string padded =
      p.pad_rows + p.pad_columns > 0
          ? strf(", padded to %lld x %lld", static_cast<long long>(p.height), static_cast<long long>(p.width))
          : "";
  return strf("%s%s, %s (%s), mean %s, std %s", resize_text(p).c_str(), padded.c_str(),
              enum_name(p.interpolation), enum_name(p.resampler), channel_text(p.mean).c_str(),
              channel_text(p.std).c_str());
}

std::string card_text(const ModelCard& card, size_t indent) {
  const VitConfig& c = card.config;
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"architecture", architecture_text(c)},
      {"parameters", format_integer(count_params(c))},
      {"input", strf("%lld x %lld, %s, %s", static_cast<long long>(c.image_height),
                     static_cast<long long>(c.image_width), format_count(c.channels, "channel").c_str(),
                     format_count(c.tokens(), "token").c_str())},
      {"output", strf("%s, pooled by %s",
                      c.classes == 0   ? format_count(c.width, "feature").c_str()
                      : c.classes == 1 ? "1 class"
                                       : (format_integer(c.classes) + " classes").c_str(),
                      enum_name(c.pool))},
      {"labels", card.labels.empty() ? "none" : format_integer(static_cast<int64_t>(card.labels.size()))},
      {"names", enum_name(card.dialect)},
      {"numerics", numerics_text(c)},
      {"images", preprocess_text(card.preprocess)}};
  for (size_t i = 0; i < card.notes.size(); ++i) pairs.emplace_back(i == 0 ? "from" : "", card.notes[i]);
  return format_pairs(pairs, indent);
}

ordered_json card_json(const ModelCard& card) {
  return {{"path", card.path},
          {"dialect", enum_name(card.dialect)},
          {"params", count_params(card.config)},
          {"config", config_json(card.config)},
          {"preprocess", preprocess_json(card.preprocess)},
          {"labels", card.labels.size()},
          {"scores", enum_name(card.scores)},
          {"notes", card.notes},
          {"warnings", card.warnings}};
}

std::vector<std::string> card_differences(const ModelCard& a, const ModelCard& b) {
  std::vector<std::string> out;
  append_differences(config_json(a.config), config_json(b.config), out);
  append_differences(preprocess_json(a.preprocess), preprocess_json(b.preprocess), out);
  if (a.scores != b.scores)
    out.push_back(strf("scores: %s and %s", enum_name(a.scores), enum_name(b.scores)));
  if (a.labels != b.labels) out.push_back(strf("labels: %zu and %zu", a.labels.size(), b.labels.size()));
  return out;
}

ordered_json zoo_json() {
  ordered_json json = ordered_json::array();
  for (const auto& [config, preprocess] : zoo())
    json.push_back({{"name", config.arch},
                    {"params", count_params(config)},
                    {"macs", count_macs(config)},
                    {"image_height", config.image_height},
                    {"image_width", config.image_width},
                    {"pool", enum_name(config.pool)},
                    {"gelu", enum_name(config.gelu)},
                    {"images", preprocess_text(preprocess)}});
  return json;
}

std::string zoo_text() {
  Table table({{"architecture"},
               {"parameters", Align::kRight},
               {"GMACs", Align::kRight},
               {"input"},
               {"pooled by"},
               {"GELU"},
               {"images"}});
  for (const auto& [config, preprocess] : zoo())
    table.row({config.arch, format_integer(count_params(config)),
               strf("%.2f", static_cast<double>(count_macs(config)) / 1e9),
               strf("%lld x %lld", static_cast<long long>(config.image_height),
                    static_cast<long long>(config.image_width)),
               enum_name(config.pool), enum_name(config.gelu), preprocess_text(preprocess)});
  return table.text();
}

}  // namespace vitrail
