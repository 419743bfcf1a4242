// A device as the planner and the kernel choice see it: plain facts, no vendor headers, so that a step can be
// sized for a device this machine lacks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backend/kernel_table.h"

namespace vitrail {

struct DeviceInfo {
  std::string name = "cpu";
  size_t memory_bytes = 0;  // 0: unknown
  int threads = 1;
  int isa = 0;  // IsaLevel of backend/cpu

  // The three kinds of CPU parallelism, each of which can be turned off to show its effect.
  bool parallel_heads = true;
  bool parallel_rows = true;
  bool parallel_softmax = true;

  // Measured preferences of the kernel choice; null: the order of the lists.
  std::shared_ptr<const KernelTable> kernels = nullptr;
};

}  // namespace vitrail
