#include "cli/model_settings.h"

#include <type_traits>

#include "base/error.h"

namespace vitrail::cli {

namespace {
// `arch` is what --model says already.
bool settable(const char* name) {
  return std::string_view(name) != "arch";
}

template <typename T>
OptionSpec spec_of(const char* name, const char* help) {
  OptionSpec spec{.name = std::string("model.") + name, .help = help};
  if constexpr (std::is_same_v<T, bool>) {
    spec.metavar = "BOOL";
    spec.choices = {"true", "false"};
  } else if constexpr (std::is_enum_v<T>) {
    spec.metavar = "KIND";
    spec.choices.assign(std::begin(EnumNames<T>::names), std::end(EnumNames<T>::names));
  } else if constexpr (std::is_integral_v<T>) {
    spec.kind = ValueKind::kInteger;
    spec.metavar = "N";
  } else if constexpr (std::is_floating_point_v<T>) {
    spec.kind = ValueKind::kNumber;
    spec.metavar = "X";
  }
  return spec;
}

template <typename T>
void assign(const Options& options, const std::string& name, T& field) {
  if constexpr (std::is_same_v<T, bool>)
    field = options.text(name) == "true";
  else if constexpr (std::is_enum_v<T>)
    field = *enum_from_name<T>(options.text(name));
  else if constexpr (std::is_integral_v<T>)
    field = options.integer(name);
  else if constexpr (std::is_floating_point_v<T>)
    field = options.number(name);
}
}  // namespace

std::vector<OptionSpec> model_settings() {
  std::vector<OptionSpec> specs;
  const VitConfig config;
  visit_fields(config, [&](const char* name, const auto& field, const char* help) {
    if (settable(name)) specs.push_back(spec_of<std::decay_t<decltype(field)>>(name, help));
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
    if (settable(name) && options.given(key)) assign(options, key, field);
  });
}

}  // namespace vitrail::cli
