// Says which models a dialect can express, and the names it uses when a model is written in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/dialects/dialect_table.h"
#include "models/vit_params.h"

namespace vitrail {

bool can_express(Dialect dialect, const VitConfig& config);

// Throws Error(kUsage) naming the feature that the dialect cannot express.
void refuse_inexpressible(Dialect dialect, const VitConfig& config);

struct WrittenForm {
  const DialectTable* table = nullptr;
  Form form = Form::kFirst;
  std::string prefix;
};
WrittenForm written_form(Dialect dialect, const VitConfig& config);

// Returns the tensors that hold a canonical parameter, with their names.
std::vector<std::pair<std::string, const NameRow*>> rows_for(const WrittenForm& form, const ParamSpec& param);

}  // namespace vitrail
