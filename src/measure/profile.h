// Shows where the time of a run goes, as rows: nodes grouped by operation and by the parts of a ViT layer.
// Measures nothing itself.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"

namespace vitrail {

// The most that the device was measured to reach; 0: not known.
struct Peaks {
  double gflops = 0;
  double gbps = 0;  // GB/s of copying, bytes read and bytes written both counted
};

struct ProfileRow {
  std::string name, kind, kernel;
  int64_t nodes = 0;
  double seconds = 0;  // of one run, or of one update
  double flops = 0, bytes = 0;
  std::vector<std::string> declined = {};  // "kernel: why" of faster kernels that declined its nodes
  // Seconds in each block of the network that has such nodes, and the number of that block; empty for nodes
  // before and after the blocks.
  std::vector<double> layer_seconds = {};
  std::vector<int> layer_numbers = {};
  Phase phase = Phase::kForward;

  int64_t layers() const { return static_cast<int64_t>(layer_seconds.size()); }
  // Returns the median over the blocks, since the last block may compute less than the others.
  double seconds_per_layer() const;
  // Returns the least seconds by the roofline: the slower of arithmetic and memory. 0: the peaks are not
  // known.
  double bound_seconds(const Peaks& peaks) const;
  bool bound_by_memory(const Peaks& peaks) const;
};

// Rows of parts are those of the classic table (attention, MLP, ...), fine ones are the steps of a block
// (qkv, softmax, fc1, ...): what one kernel computes is one row, named by all its steps.
enum class ProfileBy { kPart, kFine, kOperation, kNode };

// A program and the times of its nodes. A step runs some programs several times and has `steps` runs of them
// all; 0: a run of the program is a step.
struct TimedProgram {
  const ExecutionPlan& plan;
  const std::vector<NodeTime>& times;
  int64_t steps = 0;
};

// Returns the rows in the order of computation, with the mean times of one step; each has nodes of one phase.
std::vector<ProfileRow> profile_rows(const std::vector<TimedProgram>& programs, ProfileBy by);
std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by);
ProfileRow total_of(const std::vector<ProfileRow>& rows);

// Returns why faster kernels declined, once per operation: "blocks.*.mlp.fc1: kernel x declined: why".
std::vector<std::string> declined_lines(const ExecutionPlan& plan);

// Returns the kernel of each operation: "blocks.*.mlp.fc1: packed gemm".
std::vector<std::string> kernel_lines(const ExecutionPlan& plan);

// Returns the name that a node shares with the same node of the other blocks: "blocks.*.attn.qkv".
std::string operation_of(const std::string& node_name);

// Returns "forward", "backward" or "update".
const char* phase_name(Phase phase);

}  // namespace vitrail
