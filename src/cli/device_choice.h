// Where a command runs. --device and --backend combined into one choice of kernels and device; --kernels, the
// table that ranks kernels; --ranks, --mesh and --deadline: the threads or processes that share an inference,
// and what each of them is to do. A process that is alone runs as if there were no ranks.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/json.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launch/rank_session.h"
#include "measure/kernel_table_file.h"
#include "plan/devices.h"
#include "train/team.h"

namespace vitrail::cli {

struct DeviceChoice {
  const Backend* backend;
  DeviceInfo info;
};

// Returns the device, with --threads, --isa and --kernels where they apply; throws Error(kDevice) when it is
// not present.
DeviceChoice chosen_device(const Options& options);
// Returns the device of rank `local` of the `sharing` ranks on this host: its share of the cores where
// --threads does not say how many, and the GPU of its number where --device names none.
DeviceChoice chosen_device(const Options& options, int local, int sharing);
// Returns the name of the backend alone; `device` replaces --device.
const char* chosen_backend(const Options& options);
const char* chosen_backend(const Options& options, const std::string& device);

// Returns the table of --kernels for --device, or for `device` in its place.
KernelsFile chosen_kernels(const Options& options);
KernelsFile chosen_kernels(const Options& options, const std::string& device);

OptionSpec deadline_option();  // --deadline
RankSettings rank_settings(const Options& options);

// Returns --mesh; throws Error(kUsage) for what an inference cannot share out.
MeshConfig inference_mesh(const Options& options);

// The options --ranks, --mesh and --deadline.
std::vector<OptionSpec> rank_options();

// One rank of an inference.
struct InferenceRank {
  Console& console;                // silent on all ranks but the first
  RankContext* context = nullptr;  // null: a process that is alone
  Distribution distribution = {};
  int threads = 0;  // its share of the host's; 0: as the options say

  MeshCommunicators* partners() const { return context ? context->ranks : nullptr; }
  Team team() const { return Team(partners()); }
  Pulse* pulse() const { return context ? context->pulse : nullptr; }
  // Returns the options for this rank; a batch has at least an image for every rank that takes other images.
  EngineOptions on_rank(EngineOptions options) const;
};

class InferenceRanks {
 public:
  InferenceRanks(const Options& options, Console& console, RankSession* session);

  bool leads() const { return leads_; }
  int size() const { return world_.size; }
  const char* transport() const { return world_.transport; }
  const MeshConfig& mesh() const { return mesh_; }
  int sharing() const { return world_.local_size; }  // ranks on this host
  // Silent in a process without the first rank.
  Console& console() { return leads_ ? console_ : silent_; }

  // The texts that the first rank has; it alone calls `find`.
  std::vector<std::string> from_leader(const std::function<std::vector<std::string>()>& find);
  // Throws Error(kConfig) when ranks of other processes run another program, or differ in these facts.
  void require_same(Json facts);
  // Calls `body` once a rank; may be called once. A stop that ranks agreed on is told by the first of them.
  void run(const EngineOptions& engine, const std::function<void(InferenceRank&)>& body);

 private:
  // What a silent console writes to.
  struct Nowhere {
    Nowhere();
    ~Nowhere();
    Nowhere(const Nowhere&) = delete;
    Nowhere& operator=(const Nowhere&) = delete;
    int fd;
  };
  void run_rank(RankContext* context, const std::function<void(InferenceRank&)>& body);
  bool has_processes() const { return world_.size > 1 && std::string_view(world_.transport) == "mpi"; }

  const Options& options_;
  Console& console_;
  const Nowhere nowhere_;
  Console silent_;
  RankSession* session_;
  MeshConfig mesh_;
  World world_;
  bool leads_ = true;
  std::mutex mutex_;
  std::optional<Error> stopped_;
};

// Runs a command with the ranks that its options and the environment say there are.
void on_ranks(const Options& options, Console& console, const std::function<void(InferenceRanks&)>& body);

}  // namespace vitrail::cli
