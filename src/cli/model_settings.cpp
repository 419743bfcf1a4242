#include "cli/model_settings.h"

#include "cli/field_settings.h"

namespace vitrail::cli {

namespace {
// `arch` is what --model says already.
bool settable(const char* name) {
  return std::string_view(name) != "arch";
}

}  // namespace

std::vector<OptionSpec> model_settings() {
  std::vector<OptionSpec> specs;
  const VitConfig config;
  visit_fields(config, [&](const char* name, const auto& field, const char* help) {
    if (settable(name))
      specs.push_back(field_spec<std::decay_t<decltype(field)>>(std::string("model.") + name, help));
  });
  return specs;
}

bool has_model_settings(const Options& options) {
  bool any = false;
  const VitConfig config;
  visit_fields(config, [&](const char* name, const auto&, const char*) {
    if (settable(name)) any |= options.given(std::string("model.") + name);
  });
  return any;
}

void apply_model_settings(const Options& options, VitConfig& config) {
  visit_fields(config, [&](const char* name, auto& field, const char*) {
    const std::string key = std::string("model.") + name;
    if (settable(name) && options.given(key)) assign_field(options, key, field);
  });
}

}  // namespace vitrail::cli
