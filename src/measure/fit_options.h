// The ways to make a wanted batch fit a device, or several: number types, recomputation, micro-batches, what
// lies on the host, ZeRO and meshes, each planned as a run would be and ranked by its predicted time. Prints
// nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/target.h"
#include "simulate/cluster_plan.h"
#include "train/train_config.h"

namespace vitrail {

// Returns whether the command line itself, no config file, speaks of an option ("targets") or a setting
// ("mesh.zero").
using IsGiven = std::function<bool(const std::string& key)>;

// Throws Error(kUsage) where options of `plan` ask for different things, or one would have no effect.
void require_one_question(const IsGiven& given);

// Returns whether a cluster is planned with the mesh of the run, not with all that are sensible.
bool names_a_mesh(const IsGiven& given);

struct FitRequest {
  TrainConfig config;  // what is not drawn stays as it is here
  std::optional<int64_t> classes;
  PlanTarget target;  // with a device file
  int64_t batch = 0;  // images an update
  // What it says of train.dtype, train.recompute, mesh.offload and mesh.zero is kept, not drawn.
  IsGiven given = [](const std::string&) { return false; };
  // The devices: a node of as many as config.mesh has ranks, or the cluster that is named, whose network is
  // then part of the times.
  ClusterSettings cluster = {};
  std::vector<std::filesystem::path> networks = {};
};

struct FitOption {
  TrainConfig config;  // the whole run, as `train` takes it
  size_t peak_bytes = 0, host_bytes = 0;
  double update_s = 0;

  double images_s() const { return static_cast<double>(config.train.batch) / update_s; }
};

struct FitOptions {
  std::string device, basis;
  size_t available_bytes = 0;
  int64_t batch = 0, ranks = 1;
  bool network = false;            // what ranks exchange is part of the times
  std::vector<FitOption> rows;     // those that fit, the fastest first
  std::optional<FitOption> least;  // where none fits: the one that needs least, without a time
  int64_t plans = 0;               // made to find them
};

// A measure that saves memory (more recomputation, offload, ZeRO, tp) is drawn only where the batch of a rank
// does not fit at once without it; each way has as few micro-batches as fit. Throws Error(kConfig) without a
// device file, and the reason where nothing can be planned at all.
FitOptions find_fit_options(const FitRequest& request);

// The settings that make the way, as sections of a config file.
nlohmann::ordered_json settings_of(const FitOption& option);
nlohmann::ordered_json to_json(const FitOptions& options);
std::string to_text(const FitOptions& options);

}  // namespace vitrail
