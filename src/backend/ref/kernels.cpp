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

// A kernel that computes on values in their own types, without conversion to double.
OpKernels as_it_is(std::string_view op, void (*kernel)(const KernelArgs&)) {
  return {op, {{.name = "ref", .declines = accepts_plain, .prepare = unprepared(no_scratch, kernel)}}};
}

class RefBackend : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = {
        row<ref::linear>("linear"),
        row<ref::linear_dx>("linear_dx"),
        row<ref::linear_dw>("linear_dw"),
        row<ref::patch_embed>("patch_embed"),
        row<ref::patch_embed_dw>("patch_embed_dw"),
        row<ref::attention>("attention"),
        row<ref::attention_probs>("attention_probs"),
        row<ref::attention_grad>("attention_grad"),
        row<ref::layernorm>("layernorm"),
        row<ref::layernorm_grad>("layernorm_grad"),
        row<ref::rmsnorm>("rmsnorm"),
        row<ref::rmsnorm_grad>("rmsnorm_grad"),
        row<ref::qk_norm>("qk_norm"),
        row<ref::qk_norm_grad>("qk_norm_grad"),
        row<ref::softmax>("softmax"),
        row<ref::softmax_grad>("softmax_grad"),
        row<ref::gelu>("gelu"),
        row<ref::gelu_grad>("gelu_grad"),
        row<ref::activate>("activate"),
        row<ref::activate_grad>("activate_grad"),
        row<ref::tanh>("tanh"),
        row<ref::tanh_grad>("tanh_grad"),
        row<ref::bias>("bias"),
        row<ref::sum_rows>("sum_rows"),
        row<ref::scale>("scale"),
        row<ref::scale_dw>("scale_dw"),
        row<ref::add>("add"),
        row<ref::average>("average"),
        row<ref::multiply>("multiply"),
        row<ref::scale_by>("scale_by"),
        row<ref::cast>("cast"),
        row<ref::dropout>("dropout"),
        row<ref::cross_entropy>("cross_entropy"),
        row<ref::cross_entropy_grad>("cross_entropy_grad"),
        row<ref::loss_sum>("loss_sum"),
        row<ref::concat_tokens>("concat_tokens"),
        row<ref::sum_tokens>("sum_tokens"),
        row<ref::select_token>("select_token"),
        row<ref::select_token_grad>("select_token_grad"),
        row<ref::drop_tokens>("drop_tokens"),
        row<ref::drop_tokens_grad>("drop_tokens_grad"),
        row<ref::mean_tokens>("mean_tokens"),
        row<ref::mean_tokens_grad>("mean_tokens_grad"),
        row<ref::max_tokens>("max_tokens"),
        row<ref::max_tokens_grad>("max_tokens_grad"),
        row<ref::sincos_positions>("sincos_positions"),
        row<ref::accumulate>("accumulate"),
        row<ref::copy_into>("copy_into"),
        row<ref::square_sum>("square_sum"),
        row<ref::step_control>("step_control"),
        row<ref::sgd_update>("sgd_update"),
        row<ref::adam_update>("adam_update"),
        row<ref::lamb_update>("lamb_update"),
        row<ref::lamb_moments>("lamb_moments"),
        row<ref::lamb_move>("lamb_move"),
        row<ref::lion_update>("lion_update"),
        row<ref::ema_update>("ema_update"),
        as_it_is("make_images", ref::make_images),
        as_it_is("load_param", ref::load_param),
        as_it_is("pack", ref::pack),
        as_it_is("unpack", ref::unpack),
        as_it_is("slice", ref::slice),
        as_it_is("join", ref::join),
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
