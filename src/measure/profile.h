// Where the time of a run goes, as rows: nodes gathered by operation and by the parts of a ViT layer. Used by
// profile; measures nothing itself.
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
  std::vector<std::string> declined = {};  // "kernel: why" of faster kernels that would not run its nodes
  // Of each block of the network that has such nodes; empty for what comes before and after them.
  std::vector<double> layer_seconds = {};

  int64_t layers() const { return static_cast<int64_t>(layer_seconds.size()); }
  // The median: the last block may have less to do than the others.
  double seconds_per_layer() const;
};

enum class ProfileBy { kPart, kOperation, kNode };

// In the order of computation. One run's mean times.
std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by);

// Why faster kernels were passed over, once per operation: "blocks.*.mlp.fc1: kernel x declined: why".
std::vector<std::string> declined_lines(const ExecutionPlan& plan);

// The kernel of each operation: "blocks.*.mlp.fc1: packed gemm".
std::vector<std::string> kernel_lines(const ExecutionPlan& plan);

// Of a node; of one that runs member by member, theirs: "linear+bias".
std::string kernel_name(const NodeChoice& choice);

// "blocks.3.attn.qkv" belongs to "attention" and is the operation "blocks.*.attn.qkv".
std::string part_of(const std::string& node_name);
std::string operation_of(const std::string& node_name);

// What the device was measured to reach at most; 0: not known.
struct Peaks {
  double gflops = 0;
  double gbps = 0;  // of copying, bytes read and bytes written both counted
};

// The parts table has a column for the time in one layer, the operations table one for the kernel.
enum class ProfileColumns { kParts, kKernels };
std::string profile_table(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns columns);

// One model on two devices, row by row.
struct ProfileSide {
  std::string name;
  std::vector<ProfileRow> rows;
  Peaks peaks;
};
std::string beside_table(const ProfileSide& first, const ProfileSide& second);

}  // namespace vitrail
