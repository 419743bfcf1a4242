// Where the time of a run goes, as rows: nodes gathered by operation and by the parts of a ViT layer. Used by
// profile; measures nothing itself.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"

namespace vitrail::cli {

struct ProfileRow {
  std::string name, kind, kernel;
  int64_t nodes = 0;
  double seconds = 0;  // of one run
  double flops = 0, bytes = 0;
};

enum class ProfileBy { kPart, kOperation, kNode };

// In the order of computation. One run's mean times.
std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by);

// "blocks.3.attn.qkv" belongs to "attention" and is the operation "blocks.*.attn.qkv".
std::string part_of(const std::string& node_name);
std::string operation_of(const std::string& node_name);

std::string profile_table(const std::vector<ProfileRow>& rows, double peak_gflops, bool kernels);

}  // namespace vitrail::cli
