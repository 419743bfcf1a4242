#include "passes/offload.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ops/collective.h"
#include "ops/update/control.h"

namespace vitrail {

Program read_copies(Program program, std::vector<LowCopy>& copies) {
  std::set<std::string> known;
  for (const LowCopy& copy : copies) known.insert(copy.master);
  const std::vector<int> uses = program.use_counts();
  for (size_t id = 0; id < program.values.size(); ++id) {
    Value& value = program.values[id];
    if (value.kind != ValueKind::kParameter || uses[id] == 0) continue;
    VT_CHECK(known.insert(value.name).second, "%s is read in two types", value.name.c_str());
    copies.push_back(low_copy_of(value.name, value.desc.dtype));
    value.name = copies.back().name;
    value.kind = ValueKind::kState;
  }
  return program;
}

Program program_of(const Program& source, const std::vector<Node>& nodes) {
  Program result;
  std::map<ValueId, ValueId> taken;
  const auto take = [&](ValueId& id) {
    const auto [found, fresh] = taken.try_emplace(id, static_cast<ValueId>(result.values.size()));
    if (fresh) result.values.push_back(source.values[static_cast<size_t>(id)]);
    id = found->second;
  };
  for (Node node : nodes) {
    for (ValueId& id : node.ins) take(id);
    for (ValueId& id : node.outs) take(id);
    result.nodes.push_back(std::move(node));
  }
  for (const Output& out : source.outputs)
    if (const auto found = taken.find(out.value); found != taken.end())
      result.outputs.push_back({out.name, found->second});
  return result;
}

UpdateParts split_update(const Program& update) {
  const auto decides = [](const Node& node) { return is<StepControlOp>(*node.op); };
  const auto control = std::find_if(update.nodes.begin(), update.nodes.end(), decides);
  const auto rest = control == update.nodes.end() ? update.nodes.begin() : control + 1;
  std::vector<Node> host, gather;
  for (auto node = rest; node != update.nodes.end(); ++node) {
    const CollectiveOp* op = as_collective(*node->op);
    VT_REQUIRE(
        !op || op->form().kind == CollectiveKind::kAllGather, ErrorKind::kConfig,
        "mesh.offload with an optimizer whose ranks exchange norms of their parts (%s): lamb runs with it "
        "where every rank has whole parameters (mesh.tp=1, and mesh.zero=0 or mesh.dp=1)",
        node->name.c_str());
    if (op || is<WaitOp>(*node->op))
      gather.push_back(*node);
    else if (update.values[static_cast<size_t>(node->ins[0])].desc.elems() > 0)
      host.push_back(*node);
  }
  UpdateParts parts{program_of(update, {update.nodes.begin(), rest}), program_of(update, host),
                    program_of(update, gather)};
  parts.host.outputs.clear();
  return parts;
}

}  // namespace vitrail
