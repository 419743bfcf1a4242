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

OpKernels row(std::string_view op, void (*run)(const KernelArgs&)) {
  return {op, {{.name = "ref", .declines = accepts_plain, .scratch_bytes = no_scratch, .run = run}}};
}

class RefBackend : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = {
        row("linear", ref::linear),
        row("patch_embed", ref::patch_embed),
        row("attention", ref::attention),
        row("attention_probs", ref::attention_probs),
        row("layernorm", ref::layernorm),
        row("qk_norm", ref::qk_norm),
        row("softmax", ref::softmax),
        row("gelu", ref::gelu),
        row("tanh", ref::tanh),
        row("bias", ref::bias),
        row("scale", ref::scale),
        row("add", ref::add),
        row("average", ref::average),
        row("concat_tokens", ref::concat_tokens),
        row("select_token", ref::select_token),
        row("drop_tokens", ref::drop_tokens),
        row("mean_tokens", ref::mean_tokens),
        row("sincos_positions", ref::sincos_positions),
        row("load_param", ref::load_param),
    };
    return list;
  }
};

}  // namespace

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

}  // namespace vitrail
