#include "train/config_io.h"

#include "base/error.h"
#include "base/file.h"

namespace vitrail {

namespace {
constexpr size_t kMaxBytes = 1 << 20;

// Returns whether the field is a dimension; `arch` is a setting of its own.
bool is_dimension(std::string_view name) {
  return name != "arch";
}
}  // namespace

std::vector<FieldSpec> model_fields() {
  std::vector<FieldSpec> specs;
  const VitConfig config;
  visit_fields(config, [&](const char* name, const auto& field, const char* help) {
    if (is_dimension(name))
      specs.push_back(field_spec<std::decay_t<decltype(field)>>(std::string("model.") + name, help));
  });
  return specs;
}

std::vector<FieldSpec> train_fields() {
  std::vector<FieldSpec> specs = {
      field_spec<std::string>("model.init", "model to start from; empty: from scratch"),
      field_spec<std::string>("model.arch", "timm's name of an architecture"),
      field_spec<InitStyle>("model.style", "how fresh weights are drawn: timm or jax"),
      field_spec<int64_t>("model.image", "rows and columns of the images the model takes")};
  for (FieldSpec& spec : model_fields()) specs.push_back(std::move(spec));
  const TrainConfig config;
  visit_preprocess_fields(config.model.preprocess, ListFields{"preprocess", specs, false});
  TrainConfig::sections(config, [&](const char* name, const auto& section) {
    std::decay_t<decltype(section)>::fields(section, ListFields{name, specs});
  });
  return specs;
}

void refuse_two_sizes(int64_t image, const char* side, int64_t other) {
  throw Error(ErrorKind::kConfig,
              strf("model.image is %lld and %s is %lld: which of them?", static_cast<long long>(image), side,
                   static_cast<long long>(other)),
              "model.image for images as high as wide; else model.image_height and model.image_width alone");
}

JsonSettings::JsonSettings(const Json& json, std::string place) : place_(std::move(place)) {
  if (!json.is_object())
    throw Error(ErrorKind::kConfig,
                strf("%s holds %s; expected a training config, which is one object", place_.c_str(),
                     json.type_name()),
                "{ \"section\": { \"key\": value } }");
  for (FieldSpec& spec : train_fields()) {
    const std::string key = spec.key;
    specs_.emplace(key, std::move(spec));
  }
  flatten(json, "");
}

void JsonSettings::flatten(const Json& object, const std::string& prefix) {
  for (const auto& [name, value] : object.items()) {
    const std::string key = prefix + name;
    if (value.is_object() && prefix.empty()) {
      if (value.empty()) require_known(key, true);
      flatten(value, key + ".");
      continue;
    }
    require_known(key, false);
    values_[key] = &value;
  }
}

void JsonSettings::require_known(const std::string& key, bool section) const {
  if (!section && specs_.contains(key)) return;
  std::vector<std::string> known;
  for (const auto& [one, spec] : specs_) known.push_back(one);
  if (section) {
    const std::set<std::string> sections = section_names(known);
    if (sections.contains(key)) return;
    known.assign(sections.begin(), sections.end());
  }
  throw Error(ErrorKind::kConfig, strf("%s: a training config has no key '%s'", place_.c_str(), key.c_str()),
              did_you_mean(key, known, "", "vitrail train --help lists every setting with its default"));
}

std::vector<std::string> JsonSettings::former_names() const {
  std::vector<std::string> lines;
  for (const auto& [key, value] : values_)
    for (const FormerName& former : specs_.at(key).former)
      if (*value == former.was) lines.push_back(former_name_note(key, former));
  return lines;
}

TrainConfig train_config_from_json(const Json& json, const std::string& place, const FindModel& find,
                                   std::vector<std::string>* notes) {
  const JsonSettings settings(json, place);
  TrainConfig config = config_from(settings, find);
  if (notes)
    for (std::string& line : settings.former_names()) notes->push_back(std::move(line));
  return config;
}

Json changed_settings(const TrainConfig& config) {
  Json json = to_json(config);
  const Json usual = to_json(TrainConfig());
  for (auto section = json.begin(); section != json.end();) {
    for (auto field = section->begin(); field != section->end();)
      field = usual[section.key()].value(field.key(), Json()) == *field ? section->erase(field)
                                                                        : std::next(field);
    section = section->empty() ? json.erase(section) : std::next(section);
  }
  return json;
}

TrainConfig read_train_config(const std::string& path, const FindModel& find,
                              std::vector<std::string>* notes) {
  const JsonLimits limits{.max_bytes = kMaxBytes, .comments = true, .kind = ErrorKind::kConfig};
  std::string text;
  try {
    text = read_file(path, kMaxBytes);
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, error.message(), "check the path of the config");
  }
  return train_config_from_json(parse_json(text, path, limits), path, find, notes);
}

}  // namespace vitrail
