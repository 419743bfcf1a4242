#include "backend/cpu/gemm/onednn.h"

#include <dlfcn.h>

#include <initializer_list>

#include "base/error.h"

namespace vitrail::cpu {
namespace {

void* open_any(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  return nullptr;
}

template <typename Function>
bool take(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

namespace onednn_calls {
int (*sgemm)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
struct Version {
  int major, minor, patch;
};
// The build that distributions ship divides its work by OpenMP, whose number of threads belongs to the
// calling thread: it is set for the call and restored after it, since that thread may be the user's.
void (*set_threads)(int) = nullptr;
int (*get_threads)() = nullptr;

void gemm(int64_t rows, int64_t cols, int64_t k, const float* a, int64_t lda, const float* w, float* c) {
  const int before = get_threads ? get_threads() : 1;
  if (before != 1) set_threads(1);
  const int status = sgemm('N', 'T', rows, cols, k, 1.0f, a, lda, w, k, 0.0f, c, cols);
  if (before != 1) set_threads(before);
  VT_CHECK(status == 0, "dnnl_sgemm gave status %d", status);
}

GemmLibrary open() {
  void* handle = open_any({"libdnnl.so.2", "libdnnl.so.3"});
  if (!handle) return {.missing = "oneDNN is not installed (libdnnl.so.2 was not found)"};
  if (!take(handle, "dnnl_sgemm", sgemm)) return {.missing = "libdnnl.so.2 lacks dnnl_sgemm"};
  if (!take(handle, "omp_set_num_threads", set_threads) || !take(handle, "omp_get_max_threads", get_threads))
    return {.missing = "libdnnl.so.2 does not use OpenMP, so it cannot be kept on one thread"};
  const Version* (*version)() = nullptr;
  if (!take(handle, "dnnl_version", version)) return {.missing = "libdnnl.so.2 lacks dnnl_version"};
  return {.missing = {},
          .version = strf("oneDNN %d.%d.%d", version()->major, version()->minor, version()->patch),
          .sgemm = gemm};
}
}  // namespace onednn_calls

}  // namespace

const GemmLibrary& onednn() {
  static const GemmLibrary kLibrary = onednn_calls::open();
  return kLibrary;
}

}  // namespace vitrail::cpu
