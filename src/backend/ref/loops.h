// The kernels of the reference backend, one per op: plain loops over doubles. in_double runs one of them on
// values of any float type by converting what it reads and writes, so each kernel is written once.
#pragma once

#include <vector>

#include "backend/kernel.h"
#include "ops/attention.h"

namespace vitrail::ref {

// Runs the kernel on f64 copies of every float input and output, and rounds what it wrote back to the
// outputs' types.
void run_converted(const KernelArgs& args, void (*kernel)(const KernelArgs&));

template <void (*kernel)(const KernelArgs&)>
void in_double(const KernelArgs& args) {
  run_converted(args, kernel);
}

// Computes the softmax weights of query i of image b and head h, for attention and its gradient. Returns the
// logarithm of the sum by which they were divided.
double softmax_weights(const AttentionGeometry& g, const double* q, const double* k, int64_t b, int64_t h,
                       int64_t i, std::vector<double>& weights);

// Every reference kernel that computes in double, by the name of its function and of its op: one line here
// declares and registers it.
#define VT_REF_KERNELS(X) \
  X(linear)               \
  X(linear_dx)            \
  X(linear_dw)            \
  X(patch_embed)          \
  X(patch_embed_dw)       \
  X(attention)            \
  X(attention_probs)      \
  X(attention_grad)       \
  X(attention_bias_grad)  \
  X(attention_sums)       \
  X(attention_sums_grad)  \
  X(layernorm)            \
  X(layernorm_grad)       \
  X(rmsnorm)              \
  X(rmsnorm_grad)         \
  X(qk_norm)              \
  X(qk_norm_grad)         \
  X(softmax)              \
  X(softmax_grad)         \
  X(gelu)                 \
  X(gelu_grad)            \
  X(gelu_slope)           \
  X(gelu_slope_grad)      \
  X(activate)             \
  X(activate_grad)        \
  X(tanh)                 \
  X(tanh_grad)            \
  X(bias)                 \
  X(sum_rows)             \
  X(scale)                \
  X(scale_dw)             \
  X(add)                  \
  X(residual_rows)        \
  X(average)              \
  X(multiply)             \
  X(scale_by)             \
  X(cast)                 \
  X(dropout)              \
  X(cross_entropy)        \
  X(cross_entropy_grad)   \
  X(loss_sum)             \
  X(concat_tokens)        \
  X(sum_tokens)           \
  X(select_token)         \
  X(select_token_grad)    \
  X(drop_tokens)          \
  X(drop_tokens_grad)     \
  X(mean_tokens)          \
  X(mean_tokens_grad)     \
  X(max_tokens)           \
  X(max_tokens_grad)      \
  X(sincos_positions)     \
  X(accumulate)           \
  X(copy_into)            \
  X(square_sum)           \
  X(step_control)         \
  X(sgd_update)           \
  X(adam_update)          \
  X(lamb_update)          \
  X(lamb_moments)         \
  X(lamb_move)            \
  X(lion_update)          \
  X(ema_update)

// These compute on values in their own types, without conversion to double.
#define VT_REF_COPIES(X) \
  X(make_images)         \
  X(load_param)          \
  X(pack)                \
  X(unpack)              \
  X(slice)               \
  X(join)

#define VT_DECLARE(op) void op(const KernelArgs& args);
VT_REF_KERNELS(VT_DECLARE)
VT_REF_COPIES(VT_DECLARE)

}  // namespace vitrail::ref
