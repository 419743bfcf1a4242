#include "backend/ref/kernels.h"

#include "backend/ref/loops.h"

namespace vitrail {

namespace {

std::string accepts_plain(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (!desc.packing.empty()) return "reads row-major weights only";
  for (const TensorDesc& desc : node.outs)
    if (!desc.packing.empty()) return "writes row-major weights only";
  return {};
}

size_t no_scratch(const NodeView&, const DeviceInfo&) {
  return 0;
}

template <void (*kernel)(const KernelArgs&)>
OpKernels row(std::string_view op) {
  return {op,
          {{.name = "ref",
            .declines = accepts_plain,
            .prepare = unprepared(no_scratch, ref::in_double<kernel>)}}};
}

// The row of a kernel that computes on values in their own types, without conversion to double.
OpKernels as_it_is(std::string_view op, void (*kernel)(const KernelArgs&)) {
  return {op, {{.name = "ref", .declines = accepts_plain, .prepare = unprepared(no_scratch, kernel)}}};
}

class RefBackend : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const std::vector<OpKernels>& kernels() const override {
#define VT_ROW(op) row<ref::op>(#op),
#define VT_AS_IT_IS(op) as_it_is(#op, ref::op),
    static const std::vector<OpKernels> list = {VT_REF_KERNELS(VT_ROW) VT_REF_COPIES(VT_AS_IT_IS)};
    return list;
  }
};

}  // namespace

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

}  // namespace vitrail
