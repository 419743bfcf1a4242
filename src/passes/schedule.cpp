// The pass that drops what nothing needs.
#include "passes/passes.h"

#include <algorithm>

namespace vitrail {

Program schedule(const Program& program) {
  std::vector<bool> needed(program.values.size(), false);
  for (const Output& out : program.outputs) needed[out.value] = true;
  Program result{.values = program.values, .nodes = {}, .outputs = program.outputs};
  for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
    const bool read =
        std::any_of(node->outs.begin(), node->outs.end(), [&](ValueId id) { return needed[id]; });
    if (!read && node->op->updates().empty() && !node->op->keeps()) continue;
    for (ValueId id : node->ins) needed[id] = true;
    result.nodes.push_back(*node);
  }
  std::reverse(result.nodes.begin(), result.nodes.end());
  result.validate();
  return result;
}

}  // namespace vitrail
