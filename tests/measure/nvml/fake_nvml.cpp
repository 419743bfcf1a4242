// A library with the symbols of NVIDIA's management library, whose two GPUs are synthetic. A test that has
// opened it by its path finds it by the library's name.
#include "fake_nvml.h"

#include <cstdint>
#include <cstdio>

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {
struct Memory {
  unsigned long long total, free, used;
};
struct Use {
  unsigned gpu, memory;
};
// Handles are one more than the number of a GPU.
size_t number_of(const void* gpu) {
  return reinterpret_cast<uintptr_t>(gpu) - 1;
}
}  // namespace

SHOWN FakeNvml* fake_nvml() {
  static FakeNvml state;
  return &state;
}

// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr): names and handles are the library's.
SHOWN int nvmlInit_v2() {
  return fake_nvml()->init;
}
SHOWN int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = fake_nvml()->gpus;
  return fake_nvml()->count;
}
SHOWN int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  *gpu = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return fake_nvml()->handle[index];
}
SHOWN int nvmlDeviceGetName(void* gpu, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "GPU of the test, %zu", number_of(gpu));
  return fake_nvml()->name;
}
SHOWN int nvmlDeviceGetMemoryInfo(void* gpu, Memory* memory) {
  ++fake_nvml()->reads;
  memory->total = fake_nvml()->total[number_of(gpu)];
  memory->used = fake_nvml()->used[number_of(gpu)];
  return fake_nvml()->memory;
}
SHOWN int nvmlDeviceGetUtilizationRates(void* gpu, Use* use) {
  use->gpu = fake_nvml()->load[number_of(gpu)];
  return fake_nvml()->use;
}
SHOWN int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* degrees) {
  *degrees = sensor == 0 ? fake_nvml()->degrees[number_of(gpu)] : 0;
  return fake_nvml()->temperature;
}
SHOWN int nvmlDeviceGetPowerUsage(void* gpu, unsigned* milliwatts) {
  *milliwatts = fake_nvml()->milliwatts[number_of(gpu)];
  return fake_nvml()->power;
}
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)
