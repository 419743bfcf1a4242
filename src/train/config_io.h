// Reading a training config: settings by dotted keys ("optim.lr"), from JSON or any other source of given
// values, into the config's structs. The list of settings and the rules between them are defined here alone.
// Knows no command line.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"
#include "train/train_config.h"

namespace vitrail {

// Returns every setting of a training config, in the order of its sections.
std::vector<FieldSpec> train_fields();
// Returns the settings of model.* that are fields of VitConfig: an architecture's dimensions.
std::vector<FieldSpec> model_fields();

// Resolves the name of a model in a config to its path; by default the name is the path.
using FindModel = std::function<std::string(const std::string& name)>;

// Throws Error(kConfig) naming key, value and what was expected; `place` says where the JSON comes from.
// Former names that were used are added to `notes`, one line each.
TrainConfig train_config_from_json(const Json& json, const std::string& place, const FindModel& find = {},
                                   std::vector<std::string>* notes = nullptr);
// Reads JSON with comments, at most 1 MiB.
TrainConfig read_train_config(const std::string& path, const FindModel& find = {},
                              std::vector<std::string>* notes = nullptr);

// Returns a config file of the settings that are not the defaults; it gives the same run.
Json changed_settings(const TrainConfig& config);

// The settings of one JSON object, nested sections as dotted keys.
class JsonSettings {
 public:
  // Throws Error(kConfig) for a key that no setting has, with the nearest one.
  JsonSettings(const Json& json, std::string place);

  bool given(const std::string& key) const { return values_.contains(key); }
  bool replaces(const std::string&, const std::string&) const { return false; }
  // Returns one line for each value that was given by its former name.
  std::vector<std::string> former_names() const;
  template <typename T>
  void assign(const std::string& key, T& field) const {
    set_field(*values_.at(key), specs_.at(key), place_ + ": " + key, field);
  }

 private:
  void flatten(const Json& object, const std::string& prefix);
  void require_known(const std::string& key, bool section) const;

  std::string place_;
  std::map<std::string, FieldSpec> specs_;
  std::map<std::string, const Json*> values_;
};

// A visitor that reads the fields of a struct under "prefix." from a source, and records which were given.
template <typename Source>
struct ReadFields {
  std::string prefix;
  const Source& source;
  std::set<std::string>* given = nullptr;
  template <typename T>
  void operator()(const char* name, T& field, const char*) const {
    const std::string key = prefix + "." + name;
    if (!source.given(key)) return;
    source.assign(key, field);
    if (given) given->insert(name);
  }
};

// Refuses a side that differs from model.image, unless model.image was given to replace it: the two
// contradict each other.
[[noreturn]] void refuse_two_sizes(int64_t image, const char* side, int64_t other);

template <typename Source>
void read_image_size(const Source& source, ModelSettings& model) {
  int64_t image = 0, other = 0;
  if (!source.given("model.image")) return;
  source.assign("model.image", image);
  for (const char* side : {"model.image_height", "model.image_width"}) {
    if (!source.given(side) || source.replaces("model.image", side)) continue;
    source.assign(side, other);
    if (other != image) refuse_two_sizes(image, side, other);
  }
  model.fields.image_height = model.fields.image_width = image;
  model.given.insert({"image_height", "image_width"});
}

// Overrides `config` by the given settings.
template <typename Source>
void take_settings(const Source& source, TrainConfig& config) {
  ModelSettings& model = config.model;
  if (source.given("model.init")) source.assign("model.init", model.init);
  if (source.given("model.arch")) source.assign("model.arch", model.arch);
  if (source.given("model.style")) source.assign("model.style", model.style);
  visit_fields(model.fields, ReadFields<Source>{"model", source, &model.given});
  read_image_size(source, model);
  visit_preprocess_fields(model.preprocess,
                          ReadFields<Source>{"preprocess", source, &model.preprocess_given});
  TrainConfig::sections(config, [&](const char* name, auto& section) {
    std::decay_t<decltype(section)>::fields(section, ReadFields<Source>{name, source});
  });
}

// Returns the defaults overridden by the given settings.
template <typename Source>
TrainConfig config_from(const Source& source, const FindModel& find) {
  TrainConfig config;
  take_settings(source, config);
  for (std::string* name : {&config.model.init, &config.distill.teacher})
    if (find && !name->empty()) *name = find(*name);
  return config;
}

}  // namespace vitrail
