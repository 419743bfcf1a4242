// The schedule of a pipeline as a table of turns: when each stage takes which micro-batch through which chunk
// of the model, forward or backward. One function makes the table of every schedule. Knows no program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

// GPipe: all micro-batches forward, then all backward. 1F1B: backward as soon as it can be, so that a stage
// keeps no more micro-batches than there are stages behind it. Interleaved: 1F1B with several chunks a stage,
// which take turns after as many micro-batches as there are stages, or a few more.
enum class PipelineSchedule { kGpipe, k1F1B, kInterleaved };
template <>
struct EnumNames<PipelineSchedule> {
  static constexpr const char* names[] = {"gpipe", "1f1b", "interleaved"};
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int stages = 1;
  int chunks = 1;      // of a stage; chunk c of the model lies on stage c modulo stages
  int64_t micros = 1;  // micro-batches of an update

  int all_chunks() const { return stages * chunks; }
  int stage_of(int chunk) const { return chunk % stages; }
};

struct PipelineTurn {
  int64_t time = 0;  // when it begins, in units of a chunk's forward half; the backward half takes two
  int stage = 0, chunk = 0;
  int64_t micro = 0;
  bool backward = false;

  int64_t end() const { return time + (backward ? 2 : 1); }
};

// The turns of all stages, by time and stage. Gradients are added up in the order of the micro-batches, as
// one rank does. Throws Error(kConfig) where the schedule does not go with the numbers.
std::vector<PipelineTurn> pipeline_turns(const PipelineShape& shape);
// Those of one stage, in the order in which it takes them.
std::vector<PipelineTurn> turns_of(const std::vector<PipelineTurn>& turns, int stage);

// The share of the stages' time in which they wait, with chunks of equal cost.
double bubble_of(const std::vector<PipelineTurn>& turns, int stages);
// The most micro-batches that a stage keeps at once, each chunk of it counted.
int64_t most_in_flight(const std::vector<PipelineTurn>& turns, int stage);
// One line a stage, one column a unit of time: "F0 F1 .  B0 B0".
std::string to_string(const std::vector<PipelineTurn>& turns, const PipelineShape& shape);

}  // namespace vitrail
