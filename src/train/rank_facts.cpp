#include "train/rank_facts.h"

#include <map>
#include <numeric>

#include "base/json_text.h"
#include "base/rng.h"
#include "io/source_identity.h"
#include "ops/collective.h"
#include "train/agreement.h"
#include "train/model_setup.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

std::string mark(uint64_t hash) {
  return strf("%016llx", static_cast<unsigned long long>(hash));
}

// Calls `visit` with every collective in the order in which a rank meets it.
template <typename Visit>
void for_each_collective(const StepPlan& plan, const Visit& visit) {
  for (const ExecutionPlan* program : plan.programs())
    for (const Node& node : program->program.nodes)
      if (const CollectiveOp* op = as_collective(*node.op)) visit(program->program, node, *op);
}

const TensorDesc& moved_by(const Program& program, const Node& node) {
  return program.values[static_cast<size_t>(node.ins.empty() ? node.outs[0] : node.ins[0])].desc;
}

// The turns of all stages, and where they are cut.
std::string schedule_text(const StepPlan& plan) {
  std::string text;
  for (const PipelineTurn& turn : plan.turns())
    text += strf("%d %d %lld %d;", turn.stage, turn.chunk, static_cast<long long>(turn.micro), turn.backward);
  for (const int block : plan.config.stages.begins) text += strf(" %d", block);
  return text;
}

// The pins and what follows from them: the layout of every parameter.
std::string layouts_text(const StepConfig& step) {
  const Distribution& how = step.distribution;
  std::string text =
      pins_text(step) + strf("%d %lld %d %zu", how.tokens_on_tp, static_cast<long long>(how.batch_unit),
                             step.zero, step.bucket_bytes);
  for (const CutTable& table : how.cuts)
    for (const int64_t at : table.cuts) text += strf(",%lld", static_cast<long long>(at));
  for (const ParamSpec& spec : step_params(step.model, step.lora))
    text += ";" + spec.name + " " +
            to_string(pinned_layout({spec.name, {step.master, spec.shape}, ValueKind::kParameter}, how));
  return text;
}

std::string order_facts_of(const StepPlan& plan) {
  std::string order;
  for_each_collective(plan, [&](const Program& program, const Node& node, const CollectiveOp& op) {
    order += strf("%s %s %s %s%s;", std::string(op.kind()).c_str(), to_string(op.form().axes).c_str(),
                  node.name.c_str(), to_string(moved_by(program, node).dtype),
                  op.form().started ? " started" : "");
  });
  return order;
}

}  // namespace

Json data_facts(const RunSetup& setup) {
  Json facts = {{"data.train, its names and labels,", mark(setup.data.train->fingerprint())}};
  if (setup.data.val) facts["data.val, its names and labels,"] = mark(setup.data.val->fingerprint());
  return facts;
}

Json model_facts(const PreparedModel& model, const Json& teacher) {
  Json facts = Json::object();
  const auto add = [&](const std::string& name, Json card, const std::string& weights) {
    card.erase(kTeacherWeights);
    facts[name + ", its config and preprocessing,"] = mark(name_key(json_text(card)));
    facts[name + ", its weights,"] = mark(name_key(weights));
  };
  if (!teacher.empty()) add("distill.teacher", teacher, teacher.at(kTeacherWeights).get<std::string>());
  if (model.opened) add("model.init", card_facts(model.card), content_identity(model.opened->source()));
  return facts;
}

Json step_facts(const StepPlan& plan) {
  return {{"the program before it is cut", mark(plan.recorded)},
          {"the mesh", to_string(plan.config.distribution.mesh)},
          {"the pins of the mesh", mark(name_key(layouts_text(plan.config)))},
          {"the schedule of the pipeline", mark(name_key(schedule_text(plan)))}};
}

Json order_facts(const StepPlan& plan) {
  return {{"the order of collectives", mark(name_key(order_facts_of(plan)))}};
}

Json count_facts(const StepPlan& plan, AxisSet axes) {
  std::string counts;
  for_each_collective(plan, [&](const Program&, const Node&, const CollectiveOp& op) {
    if (op.form().axes != axes || op.form().is_pair()) return;
    const std::vector<size_t>& each = op.form().counts;
    const bool each_way = op.form().kind == CollectiveKind::kAllToAll;  // what goes and comes differs by rank
    counts += strf("%zu:%zu;", each.size(),
                   each_way ? size_t{0} : std::accumulate(each.begin(), each.end(), size_t{0}));
  });
  return {{"what collectives along " + to_string(axes) + " move", mark(name_key(counts))}};
}

DeviceFacts kernel_facts(const DeviceInfo& device) {
  const std::string kind = device.shares_host_memory ? strf("%s isa %d", device.backend.c_str(), device.isa)
                                                     : device.backend + " " + device.name;
  return {kind, device.kernels ? mark(device.kernels->hash()) : "none"};
}

namespace {

// Returns a sentence about the kernel tables of several kinds of device.
std::string other_kinds(Communicator& world, const DeviceFacts& mine) {
  std::map<std::string, std::pair<size_t, std::string>> kinds;  // first rank and table of each
  const std::vector<std::string> all = from_all(world, mine.kind + "\n" + mine.kernels);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const size_t end = all[rank].find('\n');
    kinds.try_emplace(all[rank].substr(0, end), rank, all[rank].substr(end + 1));
  }
  if (kinds.size() < 2) return "";
  std::string text =
      "ranks compute on several kinds of device, so the last bits of a step depend on which rank has what:";
  for (const auto& [kind, found] : kinds)
    text += strf(" %s (from rank %zu, kernel table %s)", kind.c_str(), found.first, found.second.c_str());
  return text;
}

}  // namespace

std::string require_same_ranks(MeshCommunicators& ranks, const RunSetup& setup, const Json& teacher,
                               const StepPlan& plan, const DeviceInfo& device) {
  Json facts = data_facts(setup);
  facts.update(model_facts(*setup.model, teacher));
  facts.update(step_facts(plan));
  if (!plan.pipelined) facts.update(order_facts(plan));
  require_same_facts(ranks.world(), facts);
  const int stage = ranks.mesh().coordinate(Axis::kPipeline);
  if (plan.pipelined) require_same_facts(ranks.world(), order_facts(plan), "stage " + std::to_string(stage));
  for (unsigned bits = 1; bits < kAxisSets; ++bits) {
    const AxisSet axes = AxisSet::from_bits(bits);
    if (ranks.mesh().size(axes) > 1)
      require_same_facts(ranks.world(), count_facts(plan, axes), std::to_string(ranks.mesh().group(axes)));
  }
  const DeviceFacts own = kernel_facts(device);
  require_same_facts(ranks.world(), {{"the kernel table of " + own.kind, own.kernels}}, own.kind);
  return other_kinds(ranks.world(), own);
}

}  // namespace vitrail
