// Makes one node of all nodes of a kind that update persistent values and have no outputs: the optimizer's
// steps of every parameter, or the small additions to gradient sums, become one launch. For backends that
// have such kernels.
#pragma once

#include <functional>

#include "graph/program.h"

namespace vitrail {

// Where a group stands among the nodes. First: what its members read must be there already, as in updates.
// Last: nothing may read what they write, as with gradient sums.
enum class GroupAt { kFirst, kLast };

// `grouped` says for which kinds.
Program group_updates(const Program& program, const std::function<bool(std::string_view kind)>& grouped,
                      GroupAt place = GroupAt::kFirst);

}  // namespace vitrail
