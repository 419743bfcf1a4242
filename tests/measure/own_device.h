// A device file of the machine that runs the tests.
#pragma once

#include "measure/host.h"
#include "plan/device_file.h"
#include "plan/devices.h"

namespace vitrail {

// This machine as a file, with one synthetic curve.
inline DeviceFile own_file() {
  const DeviceInfo device = device_here("cpu", 0, "");
  DeviceFile file;
  file.name = read_machine().processor;
  file.memory_bytes = uint64_t{1} << 30;
  file.spec = CpuSpec{.isa = isa_name(device.isa),
                      .cores = read_machine().usable,
                      .rates = {{.threads = 1, .fma_gflops = 100, .copy_gbps = 10}},
                      .gemms = {{.m = 64, .n = 64, .k = 64, .threads = 1, .gflops = 50}}};
  file.curves.add({"linear", "packed gemm", "f32", 1, {}}, {{1e6, 1e5, 1e4, 1e4}, 1e-4});
  return file;
}

}  // namespace vitrail
