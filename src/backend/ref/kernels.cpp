#include "backend/ref/kernels.h"

#include "backend/cpu/kernels.h"
#include "backend/ref/loops.h"
#include "backend/registry.h"
#include "ops/persistent.h"
#include "ops/update/copied.h"

namespace vitrail {

namespace {

std::string accepts_plain(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (!desc.packing.empty()) return "reads row-major weights only";
  for (const TensorDesc& desc : node.outs)
    if (!desc.packing.empty()) return "writes row-major weights only";
  return {};
}

template <void (*kernel)(const KernelArgs&)>
OpKernels row(std::string_view op) {
  return {op, {{.name = "ref", .declines = accepts_plain, .prepare = unprepared(ref::in_double<kernel>)}}};
}

// The row of a kernel that computes on values in their own types, without conversion to double.
OpKernels as_it_is(std::string_view op, void (*kernel)(const KernelArgs&)) {
  return {op, {{.name = "ref", .declines = accepts_plain, .prepare = unprepared(kernel)}}};
}

// An update that also writes a copy, one after the other.
template <void (*update)(const KernelArgs&)>
void copied(const KernelArgs& args) {
  const OpPtr& op = static_cast<const CopiedUpdateOp&>(args.op).update();
  update({*op, args.ins.first(args.ins.size() - 1), args.outs, args.scratch, args.context});
  const TensorView pair[] = {args.ins.back(), args.ins[0]};
  ref::copy_into({CopyIntoOp(), pair, {}, {}, args.context});
}

class RefBackend : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const std::vector<OpKernels>& kernels() const override {
#define VT_ROW(op) row<ref::op>(#op),
#define VT_AS_IT_IS(op) as_it_is(#op, ref::op),
    static const std::vector<OpKernels> list = {VT_REF_KERNELS(VT_ROW) VT_REF_COPIES(VT_AS_IT_IS)
                                                    row<copied<ref::sgd_update>>("sgd_update+copy_into"),
                                                row<copied<ref::adam_update>>("adam_update+copy_into"),
                                                row<copied<ref::lion_update>>("lion_update+copy_into")};
    return list;
  }
};

}  // namespace

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

// It runs on the processor, and differs from the CPU's backend in what it computes with and in.
BackendEntry ref_entry() {
  BackendEntry row = cpu_entry();
  row.name = "ref";
  row.kernels = ref_backend;
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
