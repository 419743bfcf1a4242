// Measuring which of a GPU's kernels are fastest for the GEMMs of a program: each kernel is recorded with
// memory of its own and repeated in turns. Knows no option and no file.
#pragma once

#include <vector>

#include "backend/device.h"
#include "measure/tuner.h"
#include "plan/kernel_choice.h"

namespace vitrail {

// A GEMM as some nodes of a program compute it.
struct PlannedGemm {
  TuneKey key;
  OpPtr op;
  std::vector<TensorDesc> ins, outs;
  std::vector<const Kernel*> kernels;  // those that take it: what runs without a table, then its variants
  int64_t nodes = 0;                   // how many there are
};

// Each once, those of two kernels or more. From descriptions alone.
std::vector<PlannedGemm> gemms_to_tune(const std::vector<const ExecutionPlan*>& programs);

// In the order of the GEMM's kernels, without those that fail; medians of `rounds`, with more memory in
// turns than the GPU's cache holds, as a model has it.
std::vector<KernelSpeed> measure_kernels(const PlannedGemm& gemm, const DeviceInfo& info, Device& device,
                                         int64_t rounds);

// The fastest where it beats the first clearly, else the first.
const KernelSpeed& preferred(const std::vector<KernelSpeed>& speeds);

}  // namespace vitrail
