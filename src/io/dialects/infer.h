// Infers a model's architecture from its tensors alone, and checks that a finished config and the tensors
// agree in every shape.
#pragma once

#include <set>
#include <string>

#include "io/dialects/bind.h"

namespace vitrail {

struct Facts {
  VitConfig config;             // fields in `known` are read off the tensors, the others are guesses
  std::set<std::string> known;  // names as visit_fields gives them
  bool square = true;           // the image size in `config` is that of a square grid
  int64_t pos_rows = 0;         // rows of the position table; 0 when there is none
};

Facts infer_facts(const Binding& binding, const TensorSource& source);

// Sets which rows of the position table are the grid at the config's image size; throws Error(kData) with
// both numbers when they do not fit.
void settle_positions(const Facts& facts, const std::string& origin, VitConfig* config);

// Requires every parameter of the config, whole and in the right shape, and no tensor left over.
void check_complete(const VitConfig& config, const Binding& binding, const TensorSource& source);

}  // namespace vitrail
