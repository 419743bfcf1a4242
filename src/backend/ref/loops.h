// The kernels of the reference backend, one per op: plain loops over doubles. in_double runs one of them on
// values of any float type by converting what it reads and writes, so each kernel is written once.
#pragma once

#include "backend/kernel.h"

namespace vitrail::ref {

// Runs the kernel on f64 copies of every float input and output, and rounds what it wrote back to the
// outputs' types.
void run_converted(const KernelArgs& args, void (*kernel)(const KernelArgs&));

template <void (*kernel)(const KernelArgs&)>
void in_double(const KernelArgs& args) {
  run_converted(args, kernel);
}

void linear(const KernelArgs& args);
void linear_dx(const KernelArgs& args);
void linear_dw(const KernelArgs& args);
void patch_embed(const KernelArgs& args);
void patch_embed_dw(const KernelArgs& args);
void attention(const KernelArgs& args);
void attention_probs(const KernelArgs& args);
void attention_grad(const KernelArgs& args);
void layernorm(const KernelArgs& args);
void layernorm_grad(const KernelArgs& args);
void rmsnorm(const KernelArgs& args);
void rmsnorm_grad(const KernelArgs& args);
void qk_norm(const KernelArgs& args);
void qk_norm_grad(const KernelArgs& args);
void softmax(const KernelArgs& args);
void softmax_grad(const KernelArgs& args);
void gelu(const KernelArgs& args);
void gelu_grad(const KernelArgs& args);
void activate(const KernelArgs& args);
void activate_grad(const KernelArgs& args);
void tanh(const KernelArgs& args);
void tanh_grad(const KernelArgs& args);
void bias(const KernelArgs& args);
void sum_rows(const KernelArgs& args);
void scale(const KernelArgs& args);
void scale_dw(const KernelArgs& args);
void add(const KernelArgs& args);
void average(const KernelArgs& args);
void multiply(const KernelArgs& args);
void scale_by(const KernelArgs& args);
void cast(const KernelArgs& args);
void dropout(const KernelArgs& args);
void cross_entropy(const KernelArgs& args);
void cross_entropy_grad(const KernelArgs& args);
void loss_sum(const KernelArgs& args);
void concat_tokens(const KernelArgs& args);
void sum_tokens(const KernelArgs& args);
void select_token(const KernelArgs& args);
void select_token_grad(const KernelArgs& args);
void drop_tokens(const KernelArgs& args);
void drop_tokens_grad(const KernelArgs& args);
void mean_tokens(const KernelArgs& args);
void mean_tokens_grad(const KernelArgs& args);
void max_tokens(const KernelArgs& args);
void max_tokens_grad(const KernelArgs& args);
void sincos_positions(const KernelArgs& args);
void accumulate(const KernelArgs& args);
void copy_into(const KernelArgs& args);
void square_sum(const KernelArgs& args);
void step_control(const KernelArgs& args);
void sgd_update(const KernelArgs& args);
void adam_update(const KernelArgs& args);
void lamb_update(const KernelArgs& args);
void lamb_moments(const KernelArgs& args);
void lamb_move(const KernelArgs& args);
void lion_update(const KernelArgs& args);
void ema_update(const KernelArgs& args);
void make_images(const KernelArgs& args);
void load_param(const KernelArgs& args);
void pack(const KernelArgs& args);
void unpack(const KernelArgs& args);
void slice(const KernelArgs& args);
void join(const KernelArgs& args);

}  // namespace vitrail::ref
