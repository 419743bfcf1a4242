#include "backend/cuda/kernels.h"

#include <algorithm>

#include "backend/cuda/launch.h"
#include "ops/linear.h"

namespace vitrail {

namespace {

// Several families may have kernels of one op ("fused" above all); they are tried in this order.
std::vector<OpKernels> all_kernels() {
  std::vector<OpKernels> list;
  for (const auto& family :
       {cuda::gemm_kernels(), cuda::fp8_kernels(), cuda::attention_kernels(), cuda::norm_kernels(),
        cuda::row_kernels(), cuda::token_kernels(), cuda::image_kernels(), cuda::loss_kernels(),
        cuda::sum_kernels(), cuda::update_kernels(), cuda::move_kernels()})
    for (const OpKernels& row : family) {
      const auto same =
          std::find_if(list.begin(), list.end(), [&](const OpKernels& r) { return r.op == row.op; });
      if (same == list.end())
        list.push_back(row);
      else
        same->kernels.insert(same->kernels.end(), row.kernels.begin(), row.kernels.end());
    }
  return list;
}

// A value that is rounded to fp8 is best rounded by the kernel that produces it.
bool is_fp8(const Op& gemm) {
  return arithmetic_of(gemm) == Arithmetic::kFp8;
}

// These were measured on an H200: ViT-B/16 by rows, S/16 and B/16 by width (docs/precision.md).
constexpr int64_t kFp8Rows = 5000, kFp8TrainedWidth = 512;

class CudaBackend : public Backend {
 public:
  const char* name() const override { return "cuda"; }
  RewriteTraits fusing() const override {
    return {.norms = is_fp8,
            .chains = is_fp8,
            .fp8_rows = kFp8Rows,
            .fp8_trained_width = kFp8TrainedWidth,
            .positions = true,
            .few_launches = true};
  }
  std::string unsupported_reason(Arithmetic arithmetic, const DeviceInfo& device) const override {
    return cuda::unsupported_arithmetic(arithmetic, device);
  }
  std::optional<TuneKey> tune_key(const NodeView& node, const DeviceInfo& device) const override {
    return cuda::gemm_key(node, device);
  }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = all_kernels();
    return list;
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace vitrail
