// Whether fault n acts in this process: VT_FAULT of the environment names one. Part of tools/mutate's copy of
// the sources, never of Vitrail.
#pragma once

extern int vt_fault_chosen;
void vt_fault_reached();  // leaves the file that VT_FAULT_REACHED names

inline __attribute__((always_inline)) bool vt_fault_on_host(int n) {
  if (__builtin_expect(vt_fault_chosen != n, 1)) return false;
  vt_fault_reached();
  return true;
}

#ifdef __CUDACC__
#include <cuda_runtime.h>

// Every source file has its own copy on the device, written when a session opens.
using VtFaultSetter = void (*)();
void vt_fault_add_setter(VtFaultSetter setter);
void vt_fault_set_on_device();

namespace {
__constant__ int vt_fault_chosen_on_device;
[[maybe_unused]] const bool vt_fault_added =
    (vt_fault_add_setter(
         [] { cudaMemcpyToSymbol(vt_fault_chosen_on_device, &vt_fault_chosen, sizeof(vt_fault_chosen)); }),
     true);
}  // namespace

static inline __host__ __device__ bool vt_fault(int n) {
#ifdef __CUDA_ARCH__
  return vt_fault_chosen_on_device == n;
#else
  return vt_fault_on_host(n);
#endif
}
#else
inline __attribute__((always_inline)) bool vt_fault(int n) {
  return vt_fault_on_host(n);
}
#endif
