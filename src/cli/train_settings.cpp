#include "cli/train_settings.h"

#include "cli/environment.h"
#include "cli/field_settings.h"
#include "io/find_model.h"
#include "train/config_io.h"

namespace vitrail::cli {

OptionSpec option_of(const FieldSpec& field) {
  OptionSpec spec{.name = field.key, .help = field.help};
  spec.choices = field.choices;
  spec.former_choices = field.former;
  spec.usual = field.usual;
  spec.repeated = field.several();
  switch (field.kind) {
    case FieldKind::kBool:
      spec.metavar = "BOOL";
      break;
    case FieldKind::kChoice:
      spec.metavar = "KIND";
      break;
    case FieldKind::kInteger:
      spec.kind = ValueKind::kInteger;
      spec.metavar = "N";
      break;
    case FieldKind::kNumber:
    case FieldKind::kNumbers:
      spec.kind = ValueKind::kNumber;
      spec.metavar = "X";
      break;
    case FieldKind::kText:
    case FieldKind::kTexts:
      spec.metavar = field.key == "model.init" ? "MODEL" : field.key == "model.arch" ? "NAME" : "TEXT";
      break;
  }
  return spec;
}

std::vector<OptionSpec> options_of(const std::vector<FieldSpec>& fields) {
  std::vector<OptionSpec> specs;
  specs.reserve(fields.size());
  for (const FieldSpec& field : fields) specs.push_back(option_of(field));
  return specs;
}

std::vector<OptionSpec> train_settings() {
  return options_of(train_fields());
}

TrainConfig read_train_config(const Options& options) {
  TrainConfig config = config_from(OptionSettings{options},
                                   [](const std::string& name) { return find_model(name, model_places()); });
  if (options.origin("seed") > Origin::kConfig) config.train.seed = options.integer("seed");
  if (options.origin("dtype") > Origin::kConfig) assign_field(options, "dtype", config.train.dtype);
  return config;
}

std::vector<OptionSpec> model_settings() {
  return options_of(model_fields());
}

bool has_model_settings(const Options& options) {
  for (const FieldSpec& field : model_fields())
    if (options.given_beyond(field.key, Origin::kDefault)) return true;
  return false;
}

void apply_model_settings(const Options& options, VitConfig& config) {
  const OptionSettings settings{options};
  visit_fields(config, [&](const char* name, auto& field, const char* help) {
    // --model sets the architecture.
    if (std::string_view(name) != "arch") ReadFields<OptionSettings>{"model", settings}(name, field, help);
  });
}

}  // namespace vitrail::cli
