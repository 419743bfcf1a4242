#include "backend/cuda/device/foreign.cuh"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "backend/cuda/device/plugin_tables.cuh"

namespace vitrail::cuda {

namespace {

// The functions of the driver's management library (NVML) that are needed. The library comes with the driver,
// not with the toolkit, and works without a context, whose own memory is being measured.
class Management {
 public:
  Management() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = find<int()>("nvmlInit_v2");
    by_bus_ = find<int(const char*, Gpu*)>("nvmlDeviceGetHandleByPciBusId_v2");
    memory_ = find<int(Gpu, Memory*)>("nvmlDeviceGetMemoryInfo");
    usable_ = init && by_bus_ && memory_ && init() == 0;
  }

  size_t free_bytes(const char* bus) const {
    Gpu gpu = nullptr;
    Memory memory = {};
    if (!usable_ || by_bus_(bus, &gpu) != 0 || memory_(gpu, &memory) != 0) return 0;
    return memory.free;
  }

 private:
  using Gpu = struct NvmlTag*;
  struct Memory {
    unsigned long long total, free, used;
  };

  template <typename F>
  F* find(const char* name) const {
    return library_ ? reinterpret_cast<F*>(dlsym(library_, name)) : nullptr;
  }

  void* library_;  // stays open, like the driver itself
  int (*by_bus_)(const char*, Gpu*) = nullptr;
  int (*memory_)(Gpu, Memory*) = nullptr;
  bool usable_ = false;
};

}  // namespace

size_t free_on_gpu(int ordinal) {
  static const Management management;
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess) return 0;
  return management.free_bytes(bus);
}

void start_libraries(Session& session) {
  constexpr int64_t kSide = 256;
  constexpr size_t kMatrix = kSide * kSide * 2;
  std::byte* memory = nullptr;
  check(cudaMalloc(&memory, kWorkspaceBytes + 3 * kMatrix), "allocating the first device memory");
  const std::unique_ptr<std::byte, cudaError_t (*)(void*)> owned(memory, [](void* p) { return cudaFree(p); });
  std::byte* matrices = memory + kWorkspaceBytes;
  check(cudaMemsetAsync(matrices, 0, 3 * kMatrix, session.stream), "clearing device memory");
  gemm_api().gemm(session, {.m = kSide,
                            .n = kSide,
                            .k = kSide,
                            .a = {matrices, DType::kBF16},
                            .b = {matrices + kMatrix, DType::kBF16},
                            .d = {matrices + 2 * kMatrix, DType::kBF16},
                            .workspace = memory});
  check(cudaStreamSynchronize(session.stream), "the first GEMM");
}

void note_foreign(Session& session, size_t free_before) {
  static std::mutex mutex;
  static std::map<int, size_t> known;  // a context belongs to the process and is shared by all sessions
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  const size_t free_now = free_on_gpu(session.ordinal);
  // If the driver cannot say, the result is all memory in use, other programs' included.
  const size_t taken = free_before > free_now && free_now > 0 ? free_before - free_now : total - free;
  const std::lock_guard lock(mutex);
  session.foreign_bytes = known.try_emplace(session.ordinal, taken).first->second;
}

}  // namespace vitrail::cuda
