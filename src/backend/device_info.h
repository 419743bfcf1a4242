// A device as the planner and the kernel choice see it: plain facts without vendor headers, so that a step
// can be planned for a device this machine lacks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backend/kernel_table.h"

namespace vitrail {

struct DeviceInfo {
  std::string backend = "cpu";  // the row of the registry that opens it
  std::string name = "cpu";
  bool shares_host_memory = true;  // the host reads and writes it by its addresses
  bool records_graphs = false;     // launches can be recorded and repeated
  size_t memory_bytes = 0;         // 0: unknown
  int threads = 1;
  int isa = 0;  // IsaLevel of backend/cpu

  // The following fields describe a GPU.
  int ordinal = 0;     // which of several
  int compute = 0;     // 10 x compute capability: 90 for 9.0
  int processors = 0;  // multiprocessors
  size_t l2_bytes = 0;

  // The three kinds of CPU parallelism. Each can be turned off to measure its effect.
  bool parallel_heads = true;
  bool parallel_rows = true;
  bool parallel_softmax = true;

  // The measured preferences of the kernel choice; null: kernels are tried in the order of the lists.
  std::shared_ptr<const KernelTable> kernels = nullptr;
};

}  // namespace vitrail
