// The last pass: drops nodes whose results nothing needs and orders the rest on their lanes.
#pragma once

#include "graph/program.h"

namespace vitrail {

Program schedule(const Program& program);

}  // namespace vitrail
