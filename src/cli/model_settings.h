// The fields of VitConfig as settings (--set model.depth=24): made from the config's own list of fields, so
// that neither can forget one.
#pragma once

#include <vector>

#include "cli/options.h"
#include "models/vit_config.h"

namespace vitrail::cli {

std::vector<OptionSpec> model_settings();
bool has_model_settings(const Options& options);
void apply_model_settings(const Options& options, VitConfig& config);

}  // namespace vitrail::cli
