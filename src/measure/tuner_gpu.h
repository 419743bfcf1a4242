// Measures which of a GPU's kernels are fastest for the GEMMs of a program: each kernel is recorded with
// memory of its own, and the recordings are replayed in alternation. Knows no option and no file.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/device.h"
#include "measure/tuner.h"
#include "plan/kernel_choice.h"
#include "telemetry/table.h"

namespace vitrail {

// A GEMM that one or more nodes of a program compute.
struct PlannedGemm {
  TuneKey key;
  OpPtr op;
  std::vector<TensorDesc> ins, outs;
  std::vector<const Kernel*> kernels;  // those that accept it: the default one, then its variants
  int64_t nodes = 0;                   // number of nodes that compute it
};

// Returns each GEMM once, if two kernels or more accept it. Works on descriptions alone.
std::vector<PlannedGemm> gemms_to_tune(const std::vector<const ExecutionPlan*>& programs);

// Returns the speeds in the order of the GEMM's kernels, without those that fail: medians of `rounds`,
// cycling through more memory than the GPU's cache holds, as a model does.
std::vector<KernelSpeed> measure_kernels(const PlannedGemm& gemm, const DeviceInfo& info, Device& device,
                                         int64_t rounds);

// Returns the fastest where it is clearly faster than the first, else the first.
const KernelSpeed& preferred(const std::vector<KernelSpeed>& speeds);

// The preferred kernels of all GEMMs, added to a table, for scripts and for people.
struct TunedGemms {
  KernelTable table;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
};
// Calls `advance` with the name of each GEMM that was measured.
TunedGemms tune_gemms(const std::vector<PlannedGemm>& gemms, const DeviceInfo& info, Device& device,
                      int64_t rounds, KernelTable table,
                      const std::function<void(const std::string&)>& advance);

}  // namespace vitrail
