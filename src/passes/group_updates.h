// Makes one node of all nodes of a kind that update persistent values and have no outputs: the optimizer's
// steps of every parameter become one launch. Runs on update programs, for backends that have such kernels.
#pragma once

#include <functional>

#include "graph/program.h"

namespace vitrail {

// `grouped` says for which kinds.
Program group_updates(const Program& program, const std::function<bool(std::string_view kind)>& grouped);

}  // namespace vitrail
