// The kernels of the reference backend, one per op: plain loops over doubles. in_double runs one of them on
// values of any float type by converting what it reads and writes, so each kernel is written once.
#pragma once

#include <vector>

#include "backend/kernel.h"
#include "ops/attention.h"

namespace vitrail::ref {

// The kernel of a row: it takes row-major values alone and reads its node at every launch.
Kernel loop(RunKernel run);
// Runs the kernel on f64 copies of every float input and output, and rounds what it wrote back to the
// outputs' types.
void run_converted(const KernelArgs& args, RunKernel kernel);

// The row of a kernel that computes in double, and of one that computes on values in their own types.
template <typename Served, RunKernel kernel>
OpKernels in_double() {
  return row<Served>({loop([](const KernelArgs& args) { run_converted(args, kernel); })});
}
template <typename Served, RunKernel kernel>
OpKernels as_it_is() {
  return row<Served>({loop(kernel)});
}

// Computes the softmax weights of query i of image b and head h, for attention and its gradient. Returns the
// logarithm of the sum by which they were divided.
double softmax_weights(const AttentionGeometry& g, const double* q, const double* k, int64_t b, int64_t h,
                       int64_t i, std::vector<double>& weights);
// log(1 + exp(x)), without overflow.
double softplus(double x);
// Returns an output that sums are added to, as zeros; null when the node has no such output.
double* cleared_sums(const KernelArgs& args, size_t out);
// Kernels that others end with, in double.
void copy_into(const KernelArgs& args);
void gelu(const KernelArgs& args);
void sum_rows(const KernelArgs& args);

// The files with kernels, each of which lists its own: one line here declares and registers them.
#define VT_REF_FILES(X) \
  X(activate)           \
  X(flat)               \
  X(gemm_grads)         \
  X(gemms)              \
  X(images)             \
  X(losses)             \
  X(max_tokens)         \
  X(rmsnorm)            \
  X(row_grads)          \
  X(rows)               \
  X(tokens)             \
  X(updates)

#define VT_DECLARE(file) std::vector<OpKernels> file##_kernels();
VT_REF_FILES(VT_DECLARE)

}  // namespace vitrail::ref
