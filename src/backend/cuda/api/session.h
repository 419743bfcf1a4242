// Declares what the program and the CUDA plugin agree on about a device in use and its memory. It has plain
// types only: no vendor header is included here, and the plugin knows none of the program's ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace vitrail::cuda {

// One GPU's streams and library handles, on which kernels are enqueued. Only the plugin knows its members.
struct Session;

// An operand of a kernel in device memory.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::kF32;
};

struct GpuFacts {
  std::string name;
  int compute = 0;  // 90 for 9.0
  int processors = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
};

struct SessionApi {
  // The number of GPUs of this machine; -1, with the reason in `why`, when the driver cannot be used.
  int (*count)(std::string& why);
  GpuFacts (*facts)(int ordinal);
  void (*versions)(std::string& driver, std::string& runtime, std::string& cublas);
  Session* (*open)(int ordinal);
  void (*close)(Session*);
  // Makes the session's GPU current in the calling thread; required before any other family of functions
  // enqueues work.
  void (*use)(Session&);

  std::byte* (*allocate)(Session&, size_t bytes);  // null when there is no more
  void (*release)(Session&, std::byte*);
  std::byte* (*allocate_host)(Session&, size_t bytes);  // page-locked; null when there is no more
  void (*release_host)(Session&, std::byte*);
  size_t (*free_bytes)(Session&);
  size_t (*foreign_bytes)(Session&);   // taken by the context and the libraries when the session was opened
  size_t (*free_on_gpu)(int ordinal);  // without a session; 0: unknown
};

}  // namespace vitrail::cuda
