// The last pass: drops nodes whose results nothing needs and that update nothing. The order recorded is kept;
// with one lane there is nothing to interleave yet.
#pragma once

#include "graph/program.h"

namespace vitrail {

Program schedule(const Program& program);

}  // namespace vitrail
