// Decides where a command runs: --device and --backend combined into one choice of kernels and device,
// --kernels, the table that ranks kernels, and --ranks, --mesh and --deadline: the ranks of an inference and
// where each of them writes. A process that is alone runs as if there were no ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/inference_ranks.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launch/rank_session.h"
#include "measure/kernel_table_file.h"
#include "plan/devices.h"

namespace vitrail::cli {

// Returns the device, with --threads, --isa and --kernels where they apply; throws Error(kDevice) when it is
// not present.
DeviceInfo chosen_device(const Options& options);
// A rank among those of the run, of which --threads may name each.
struct RankNumber {
  int rank = 0, world = 1;
};
// The option --threads of commands whose ranks may have other numbers of them.
OptionSpec rank_threads_option();
// Returns the device of a rank of this host: its share of the cores where --threads does not say how many,
// and the GPU of its number where --device names none.
DeviceInfo chosen_device(const Options& options, HostRank seat, RankNumber rank = {});
// Returns the name of the backend alone; `device` replaces --device.
std::string chosen_backend(const Options& options);
std::string chosen_backend(const Options& options, const std::string& device);

// Returns the table of --kernels for --device, or for `device` in its place.
KernelsFile chosen_kernels(const Options& options);
KernelsFile chosen_kernels(const Options& options, const std::string& device);

std::vector<OptionSpec> rank_options();
OptionSpec deadline_option();
RankSettings rank_settings(const Options& options);

// Where nobody says how many, there are as many ranks as the mesh has places.
int rank_count(const Options& options, const MeshConfig& mesh);
// Returns --mesh; throws Error(kUsage) for what an inference cannot share out.
MeshConfig inference_mesh(const Options& options);

// The ranks of an inference, of which the first one writes.
class CommandRanks : private InferenceRanks {
 public:
  CommandRanks(const Options& options, Console& console, RankSession* session);

  using InferenceRanks::from_leader;
  using InferenceRanks::leads;
  using InferenceRanks::sharing;
  using InferenceRanks::size;
  using InferenceRanks::transport;
  // Silent in a process without the first rank.
  Console& console() { return leads() ? console_ : silent_; }
  // Compares also what the options say of the computation.
  void require_same(Json facts);
  // Each rank has a console of its own; a stop that ranks agreed on is told by the first of them.
  void run(const EngineOptions& engine, const std::function<void(InferenceRank&, Console&)>& body);

 private:
  const Options& options_;
  Console& console_;
  Console silent_;
  RankSession* session_;
};

// Runs a command with the ranks that its options and the environment say there are.
void on_ranks(const Options& options, Console& console, const std::function<void(CommandRanks&)>& body);

}  // namespace vitrail::cli
