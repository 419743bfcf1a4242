#include "measure/profile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/timing.h"
#include "base/values.h"
#include "ops/attention.h"
#include "ops/collective.h"
#include "ops/fused.h"
#include "ops/make_images.h"
#include "ops/turn.h"
#include "plan/node_times.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
// The parts are the rows of the classic per-layer table: embeddings, norm, attention, residual, norm, MLP,
// residual, last norm. Within attention and MLP there are finer rows.
struct StepRow {
  ModelStep step;
  const char *part, *fine;
};
constexpr StepRow kSteps[] = {
    {ModelStep::kNone, "pooling and head", "pooling and head"},
    {ModelStep::kEmbeddings, "embeddings", "embeddings"},
    {ModelStep::kNorm1, "layer norm 1", "layer norm 1"},
    {ModelStep::kQkv, "attention", "qkv"},
    {ModelStep::kScores, "attention", "scores + softmax + context"},
    {ModelStep::kProjection, "attention", "projection"},
    {ModelStep::kAttention, "attention", "attention"},
    {ModelStep::kResidual1, "residual 1", "residual 1"},
    {ModelStep::kNorm2, "layer norm 2", "layer norm 2"},
    {ModelStep::kFc1, "MLP", "fc1"},
    {ModelStep::kGelu, "MLP", "GELU"},
    {ModelStep::kFc2, "MLP", "fc2"},
    {ModelStep::kMlp, "MLP", "MLP"},
    {ModelStep::kResidual2, "residual 2", "residual 2"},
    {ModelStep::kLastNorm, "last layer norm", "last layer norm"},
    {ModelStep::kLoss, "loss", "loss"},
};

const StepRow& row_of(ModelStep step) {
  return *std::find_if(std::begin(kSteps), std::end(kSteps),
                       [&](const StepRow& r) { return r.step == step; });
}

void add_new(const std::vector<std::string>& lines, std::vector<std::string>& to) {
  for (const std::string& line : lines)
    if (std::find(to.begin(), to.end(), line) == to.end()) to.push_back(line);
}

// Returns the steps of a node, each once: "layer norm 1 + qkv".
std::string fine_name(const Node& node) {
  const auto* fused = dynamic_cast<const FusedOp*>(node.op.get());
  if (!fused) return row_of(node.step).fine;
  std::vector<std::string> steps;
  for (const FusedOp::Member& member : fused->members()) add_new({row_of(member.step).fine}, steps);
  return join(steps, " + ");
}

// What is none of the model's parts is named by what it does.
std::string row_name(const Node& node, ProfileBy by) {
  if (by == ProfileBy::kNode) return node.name;
  if (by == ProfileBy::kOperation) return operation_of(node.name);
  if (as_collective(*node.op) || is<WaitOp, UploadOp>(*node.op)) return "communication";
  if (is<TurnOp, MakeImagesOp>(*node.op)) return "inputs";
  if (node.phase == Phase::kUpdate) return "optimizer";
  return by == ProfileBy::kPart ? row_of(node.step).part : fine_name(node);
}

// Adds the times of a row's nodes block by block.
class BlockTimes {
 public:
  void add(size_t row, int block, double seconds) {
    if (block >= 0) seconds_[{row, block}] += seconds;
  }
  void write(std::vector<ProfileRow>& rows) const {
    for (const auto& [place, seconds] : seconds_) {
      rows[place.first].layer_numbers.push_back(place.second);
      rows[place.first].layer_seconds.push_back(seconds);
    }
  }

 private:
  std::map<std::pair<size_t, int>, double> seconds_;  // by row and block
};

// Adds one node to its row; `runs` are those of the node in a step.
void add_node(const ExecutionPlan& plan, size_t index, double seconds, double runs, ProfileRow& row) {
  const Node& node = plan.program.nodes[index];
  const Cost cost = node.op->cost(plan.program.descs(node.ins), plan.program.descs(node.outs));
  ++row.nodes;
  add_new(plan.choices[index].declined, row.declined);
  row.flops += cost.flops * runs;
  row.bytes += cost.bytes * runs;
  row.seconds += seconds;
}
}  // namespace

std::string operation_of(const std::string& node_name) {
  std::string text;
  for (size_t i = 0; i < node_name.size(); ++i) {
    const bool number =
        std::isdigit(static_cast<unsigned char>(node_name[i])) && i > 0 && node_name[i - 1] == '.';
    if (!number) {
      text += node_name[i];
      continue;
    }
    text += '*';
    while (i + 1 < node_name.size() && std::isdigit(static_cast<unsigned char>(node_name[i + 1]))) ++i;
  }
  return text;
}

const char* phase_name(Phase phase) {
  return phase == Phase::kForward ? "forward" : phase == Phase::kBackward ? "backward" : "update";
}

std::vector<ProfileRow> profile_rows(const std::vector<TimedProgram>& programs, ProfileBy by) {
  std::vector<ProfileRow> rows;
  BlockTimes blocks;
  for (const TimedProgram& program : programs)
    for (size_t i = 0; i < program.plan.program.nodes.size(); ++i) {
      if (program.steps > 0 && program.times[i].runs == 0) continue;  // no part of these steps
      const Node& node = program.plan.program.nodes[i];
      const std::string name = row_name(node, by);
      const auto same = [&](const ProfileRow& r) { return r.name == name && r.phase == node.phase; };
      auto row = by == ProfileBy::kNode ? rows.end() : std::find_if(rows.begin(), rows.end(), same);
      if (row == rows.end())
        row = rows.insert(rows.end(), {.name = name,
                                       .kind = std::string(node.op->kind()),
                                       .kernel = kernel_name(program.plan.choices[i]),
                                       .phase = node.phase});
      const auto runs = static_cast<double>(program.times[i].runs);
      const double steps = program.steps > 0 ? static_cast<double>(program.steps) : runs;
      const double seconds = runs > 0 ? program.times[i].seconds / steps : 0;
      add_node(program.plan, i, seconds, program.steps > 0 ? runs / steps : 1, *row);
      blocks.add(static_cast<size_t>(row - rows.begin()), node.block, seconds);
    }
  blocks.write(rows);
  return rows;
}

std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by) {
  return profile_rows({{plan, times}}, by);
}

ProfileRow total_of(const std::vector<ProfileRow>& rows) {
  ProfileRow total{.name = "total", .kind = "", .kernel = ""};
  for (const ProfileRow& row : rows) {
    total.nodes += row.nodes;
    total.seconds += row.seconds;
    total.flops += row.flops;
    total.bytes += row.bytes;
  }
  return total;
}

double ProfileRow::bound_seconds(const Peaks& peaks) const {
  const double compute = peaks.gflops > 0 ? flops / (peaks.gflops * 1e9) : 0;
  return std::max(compute, peaks.gbps > 0 ? bytes / (peaks.gbps * 1e9) : 0);
}

bool ProfileRow::bound_by_memory(const Peaks& peaks) const {
  return peaks.gbps > 0 && flops * peaks.gbps < bytes * peaks.gflops;
}

double ProfileRow::seconds_per_layer() const {
  return spread_of(layer_seconds).median;
}

std::vector<std::string> declined_lines(const ExecutionPlan& plan) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    for (const std::string& reason : plan.choices[i].declined) {
      const size_t colon = reason.find(": ");
      add_new({operation_of(plan.program.nodes[i].name) + ": kernel " + reason.substr(0, colon) +
               " declined" + reason.substr(colon)},
              lines);
    }
  return lines;
}

std::vector<std::string> kernel_lines(const ExecutionPlan& plan) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    for (const Launch& launch : plan.choices[i].launches)
      add_new({operation_of(plan.program.nodes[i].name) + ": " + launch.kernel->name}, lines);
  return lines;
}

}  // namespace vitrail
