// What a dialect can hold, and the names it gives when a model is written in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/dialects/dialect_table.h"

namespace vitrail {

bool can_express(Dialect dialect, const VitConfig& config);

// Throws Error(kUsage) naming the feature the dialect has no place for.
void refuse_inexpressible(Dialect dialect, const VitConfig& config);

struct WrittenForm {
  const DialectTable* table = nullptr;
  Form form = Form::kFirst;
  std::string prefix;
};
WrittenForm written_form(Dialect dialect, const VitConfig& config);

// The tensors that hold a canonical parameter, with their names.
std::vector<std::pair<std::string, const NameRow*>> rows_for(const WrittenForm& form,
                                                             const std::string& param);

}  // namespace vitrail
