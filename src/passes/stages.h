// The pass that cuts a program by blocks into the stages of a pipeline. A stage keeps the nodes of its
// chunks, the parameters these read, and a send or a receive where a value crosses to the chunk before or
// behind. A micro program is then unrolled: the turns of the stage's schedule one after another, each with
// values of its own, so that the memory plan holds exactly the micro-batches that are in flight. Runs after
// distribute, so that what crosses are parts as ranks hold them; stages send to the same place along the
// other axes.
#pragma once

#include <optional>

#include "graph/program.h"
#include "passes/pipeline_turns.h"
#include "tensor/mesh.h"

namespace vitrail {

struct StageOptions {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int chunks = 1;                // of a stage
  int64_t micros = 1;            // micro-batches of an update
  std::vector<int> begins = {};  // the first block of every chunk but the first; empty: by cost

  PipelineShape shape(const Mesh& mesh) const {
    return {schedule, mesh.size(Axis::kPipeline), chunks, micros};
  }
};

// Returns the first blocks of all chunks but the first, so that the dearest chunk costs least; what stands
// before the blocks and behind them weighs on the first and the last. Throws Error(kConfig) where there are
// more chunks than blocks.
std::vector<int> cut_by_cost(const Program& program, int chunks);
// Throws Error(kConfig) when `begins` does not cut the blocks into that many chunks.
void require_cuts(const std::vector<int>& begins, int blocks, int chunks);

enum class StageOf {
  kUpdate,  // a micro program: its inputs are filled turn by turn
  kBatch    // one batch forward: its inputs stay inputs, and every stage gets the outputs
};
// Returns the part of this rank's stage. `options.begins` must be set.
Program stage_of(const Program& program, const StageOptions& options, const Mesh& mesh, StageOf what);

// Returns the program of a whole update: the stage's turns in the order of `turns`.
Program unrolled(const Program& stage, const std::vector<PipelineTurn>& turns);

}  // namespace vitrail
