// Products by OpenBLAS on our own tiles, where the weight is not packed.
#include "backend/cpu/blas.h"
#include "backend/cpu/lane.h"
#include "backend/cpu/launch.h"
#include "ops/linear.h"

namespace vitrail::cpu {

std::string declines_blas(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = declines_unless_f32(node, device); !reason.empty()) return reason;
  return blas_missing_reason();
}

size_t blas_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const MatmulExtents e = linear_extents(node.ins[0].shape, node.ins[1].shape);
  return blas_linear_scratch(isa_of(device), e.m, e.n, e.k, false).total(device.threads);
}

void run_blas_linear(const KernelArgs& args) {
  const MatmulExtents e = linear_extents(args.ins[0].shape(), args.ins[1].shape());
  const LinearArgs linear{.a = args.ins[0].as<float>(),
                          .lda = e.k,
                          .c = args.outs[0].as<float>(),
                          .ldc = e.n,
                          .m = e.m,
                          .n = e.n,
                          .k = e.k};
  parallel_blas_linear(lane_of(args), linear, args.ins[1].as<float>());
}

}  // namespace vitrail::cpu
