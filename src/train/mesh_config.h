// Describes how a run is shared out to its ranks: the sizes of the mesh and what each rank keeps. It is data
// and knows no communicator.
#pragma once

#include <functional>

#include "base/enum_names.h"
#include "data/sample_source.h"
#include "passes/distribute.h"
#include "passes/stages.h"
#include "train/step_config.h"

namespace vitrail {

// Says how values travel between devices that have memory of their own.
enum class MeshTransport { kAuto, kStaged, kNccl };
template <>
struct EnumNames<MeshTransport> {
  static constexpr const char* names[] = {"auto", "staged", "nccl"};
};

// Says what ZeRO 2 and 3 keep of the gradient sums while micro-batches are accumulated.
enum class KeptSums { kPiece, kWhole };
template <>
struct EnumNames<KeptSums> {
  static constexpr const char* names[] = {"piece", "whole"};
};

struct MeshConfig {
  int64_t dp = 0, tp = 1, sp = 1, pp = 1;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t virtual_stages = 1;
  std::vector<std::string> stages;
  bool tokens_on_tp = false;
  std::vector<std::string> balance = {};
  int64_t zero = 0;
  KeptSums accumulate = KeptSums::kPiece;
  double bucket_mb = 0;
  MeshTransport transport = MeshTransport::kAuto;
  Offload offload = Offload::kNone;
  int64_t verify_every = 0;
  bool bind = true;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("dp", c.dp, "ranks with other images each (data parallelism); 0: as many as are left");
    v("tp", c.tp, "ranks that share the heads and the MLP's columns (tensor parallelism)");
    v("sp", c.sp, "ranks that share the tokens (sequence parallelism, Ulysses)");
    v("pp", c.pp,
      "ranks that share the blocks (pipeline parallelism): stages that micro-batches pass one after another");
    v("schedule", c.schedule,
      "the order of a stage's work: gpipe (all forward, then all backward), 1f1b (backward as soon as it can "
      "be; "
      "keeps at most pp micro-batches) or interleaved (1f1b with several parts of the model a stage)");
    v("virtual_stages", c.virtual_stages, "parts of the model on each stage, for interleaved");
    v("stages", c.stages, "where the stages behind the first begin, as blocks.3,blocks.6; empty: by cost");
    v("tokens_on_tp", c.tokens_on_tp,
      "the tp ranks also share the tokens between attention and MLP (Megatron's sequence parallelism)");
    v("balance", c.balance,
      "images of a micro-batch by rank along dp: [24,24,16] by hand, in whole groups of augment.mix_group; "
      "auto by measured speed and memory; evenly where nothing is said");
    v("zero", c.zero,
      "what the dp ranks share out besides images: 0 nothing, 1 optimizer state, 2 also gradients, 3 also "
      "parameters");
    v("accumulate", c.accumulate,
      "gradient sums of ZeRO 2 and 3 between micro-batches: a rank's piece, exchanged every time, or whole, "
      "exchanged once");
    v("bucket_mb", c.bucket_mb,
      "megabytes of gradients that ranks exchange at once; 0: a quarter of them, 25 at most");
    v("transport", c.transport,
      "how values travel between GPUs: nccl, staged (through the host), or auto: nccl where every rank has a "
      "GPU and the library is there");
    v("offload", c.offload,
      "what lies in the host's memory instead of the device's: none, optimizer (master weights, optimizer "
      "state and averages, which the processor updates), or, with zero=3, parameters (these, and a rank's "
      "pieces of the working weights, which come to the device a block ahead)");
    v("verify_every", c.verify_every,
      "updates between comparisons of what several ranks hold alike, and before every checkpoint; ranks that "
      "differ send the run back to the last that agreed; 0: none");
    v("bind", c.bind,
      "ranks on processors have cores of their own, where these are enough for the threads of all and their "
      "launcher gave them none; false: the system moves them");
  }
};

// Parses "dp=4,tp=2,pp=2,zero=1,tokens_on_tp" into the settings of mesh; throws Error(kUsage), which speaks
// of
// --mesh, for any other text.
void take_mesh(const std::string& text, MeshConfig& mesh);

// Throws Error(kConfig) naming key, value and rule.
void validate(const MeshConfig& config);

// Returns the config with dp filled in; throws Error(kConfig) with all numbers and the meshes that fit when
// its product is not the number of ranks. `heads`, asked only then, are the model's, which must be cut
// evenly; 0: not known.
MeshConfig resolved(MeshConfig config, int world, const std::function<int64_t()>& heads = {});
Mesh mesh_of(const MeshConfig& config, int rank);
// Returns the axes longer than one, "dp=2 tp=4 tokens_on_tp", or "dp=1" when there are none.
std::string mesh_text(const MeshConfig& config);
// Names the settings that a mesh with all its sizes has nothing for; empty: none.
std::string needless_text(const MeshConfig& config);
// Returns what would make the update of so many ranks on the processors of one host faster; empty: nothing.
std::string update_advice(const MeshConfig& config, int sharing);
// The stages of a pipeline of `accumulation` micro-batches; throws Error(kConfig) when the model's blocks do
// not make as many, or something else of the settings does not go with a pipeline.
StageOptions stages_of(const MeshConfig& config, int64_t accumulation, int64_t blocks);

// The rows of a batch that a rank takes, by the cuts among the ranks along dp.
BatchShare share_of(const std::vector<int64_t>& cuts, const Mesh& mesh);
// The rows of a batch of `global` images that a rank takes, cut in multiples of `unit`. Throws Error(kConfig)
// when a rank would get none.
BatchShare share_of(int64_t global, const Mesh& mesh, int64_t unit, const char* what);

}  // namespace vitrail
