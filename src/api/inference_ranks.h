// The ranks that share an inference, threads of this process or processes of an MPI job, and what each of
// them is to do. Knows no command line and prints nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/json.h"
#include "train/team.h"
#include "train/world.h"

namespace vitrail {

// One rank of an inference.
struct InferenceRank {
  RankContext* context = nullptr;  // null: a process that is alone
  Distribution distribution = {};
  int threads = 0;  // its share of the host's; 0: as the options say

  MeshCommunicators* partners() const { return context ? context->ranks : nullptr; }
  Team team() const { return Team(partners()); }
  // Returns the options for this rank; a batch has at least an image for every rank that takes other images.
  EngineOptions on_rank(EngineOptions options) const;
};

// What the ranks of this process run on.
struct InferencePlace {
  EngineOptions engine = {};
  std::function<DeviceInfo(const HostRank&)> device;
  liveness::Heartbeat* heartbeat = nullptr;  // null: nobody watches
  Variables variables = {};                  // of the environment
  // Called with a line on how values travel between devices.
  std::function<void(const std::string&)> on_note = {};
};

class InferenceRanks {
 public:
  // Throws Error(kConfig) for a mesh of another number of ranks, with those that fit; `heads`, asked only
  // then, are the model's. Nothing: not known.
  InferenceRanks(World world, const MeshConfig& mesh, const std::function<int64_t()>& heads = {});

  bool leads() const { return leads_; }  // whether the first rank is in this process
  int size() const { return world_.size; }
  const char* transport() const { return world_.transport; }
  int sharing() const { return world_.local_size; }  // ranks on this host
  std::string text() const { return world_text(world_, mesh_); }

  // Returns the texts of the first rank; those of others are not looked at.
  std::vector<std::string> from_leader(std::vector<std::string> own);
  // Throws Error(kConfig) when ranks of other processes run another program, or differ in these facts.
  void require_same(Json facts);
  // Calls `body` once a rank; may be called once. A stop that ranks agreed on is thrown when all have ended.
  void run(const InferencePlace& place, const std::function<void(InferenceRank&)>& body);

 private:
  InferenceRank rank_of(RankContext& context, const EngineOptions& engine) const;
  bool has_processes() const { return world_.size > 1 && std::string_view(world_.transport) == "mpi"; }

  World world_;
  MeshConfig mesh_;
  bool leads_;
};

}  // namespace vitrail
