// Merges all nodes of a kind that update persistent values and have no outputs into one: the optimizer's
// steps of every parameter, or the small additions to gradient sums, become one launch. It is for backends
// that have such kernels.
#pragma once

#include <functional>

#include "graph/program.h"

namespace vitrail {

// The position of a group among the nodes. kFirst is right when what its members read is there already, as in
// updates; kLast when nothing reads what they write, as with gradient sums.
enum class GroupAt { kFirst, kLast };

// Merges the kinds for which `grouped` is true.
Program group_updates(const Program& program, const std::function<bool(std::string_view kind)>& grouped,
                      GroupAt place = GroupAt::kFirst);

}  // namespace vitrail
