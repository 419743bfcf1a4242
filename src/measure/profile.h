// Where the time of a run goes, as rows: nodes grouped by operation and by the parts of a ViT layer. Measures
// nothing itself.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"

namespace vitrail {

struct ProfileRow {
  std::string name, kind, kernel;
  int64_t nodes = 0;
  double seconds = 0;  // of one run
  double flops = 0, bytes = 0;
  std::vector<std::string> declined = {};  // "kernel: why" of faster kernels that declined its nodes
  // Seconds in each block of the network that has such nodes; empty for nodes before and after the blocks.
  std::vector<double> layer_seconds = {};

  int64_t layers() const { return static_cast<int64_t>(layer_seconds.size()); }
  // Returns the median over the blocks, since the last block may compute less than the others.
  double seconds_per_layer() const;
};

enum class ProfileBy { kPart, kOperation, kNode };

// Returns the rows in the order of computation, with the mean times of one run.
std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by);

// Returns why faster kernels declined, once per operation: "blocks.*.mlp.fc1: kernel x declined: why".
std::vector<std::string> declined_lines(const ExecutionPlan& plan);

// Returns the kernel of each operation: "blocks.*.mlp.fc1: packed gemm".
std::vector<std::string> kernel_lines(const ExecutionPlan& plan);

// Returns the name of a node's kernel; for a node that runs member by member those of its members:
// "linear+bias".
std::string kernel_name(const NodeChoice& choice);

// "blocks.3.attn.qkv" belongs to "attention" and is the operation "blocks.*.attn.qkv".
std::string part_of(const std::string& node_name);
std::string operation_of(const std::string& node_name);

// The most that the device was measured to reach; 0: not known.
struct Peaks {
  double gflops = 0;
  double gbps = 0;  // GB/s of copying, bytes read and bytes written both counted
};

// The table of parts has a column for the time in one layer, the table of operations one for the kernel.
enum class ProfileColumns { kParts, kKernels };
std::string profile_table(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which);

// One model on two devices, compared row by row.
struct ProfileSide {
  std::string name;
  std::vector<ProfileRow> rows;
  Peaks peaks;
};
std::string beside_table(const ProfileSide& first, const ProfileSide& second);

}  // namespace vitrail
