#include "backend/ref/kernels.h"

#include "backend/cpu/kernels.h"
#include "backend/ref/loops.h"
#include "backend/registry.h"

namespace vitrail {

namespace {

std::string accepts_plain(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (!desc.packing.empty()) return "reads row-major weights only";
  for (const TensorDesc& desc : node.outs)
    if (!desc.packing.empty()) return "writes row-major weights only";
  return {};
}

class RefBackend : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = [] {
      std::vector<OpKernels> all;
#define VT_ADD(file) \
  for (auto& row : ref::file##_kernels()) all.push_back(std::move(row));
      VT_REF_FILES(VT_ADD)
      return all;
    }();
    return list;
  }
};

}  // namespace

Kernel ref::loop(RunKernel run) {
  return {.name = "ref", .declines = accepts_plain, .prepare = unprepared(run)};
}

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

// It runs on the processor, and differs from the CPU's backend in what it computes with and in.
BackendEntry ref_entry() {
  BackendEntry row = cpu_entry();
  row.name = "ref";
  row.kernels = ref_backend;
  row.is_reference = true;
  row.by_isa = false;
  row.types = {"f32", "bf16", "int8", "fp8", "tf32"};
  row.report = [] {
    BackendReport report = cpu_entry().report();
    report.note = "plain loops, the oracle";
    return report;
  };
  return row;
}

}  // namespace vitrail
