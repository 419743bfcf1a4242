// Norms of every kind over every dim that they run over: the width, the heads, the width of an MLP.
#include "op_cases.h"

#include "ops/activate.h"
#include "ops/layernorm.h"
#include "ops/qk_rmsnorm.h"
#include "ops/rmsnorm.h"
#include "ops/self_attention.h"

namespace vitrail {

namespace {

using enum Role;

void add_inner_norms(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 5), h('H', 3), e('E', 16), f('F', 100);
  for (const Shape& row : {Shape{h, e}, Shape{f}}) {
    std::vector<Dim> dims = {b, n};
    for (size_t i = 0; i < row.rank(); ++i) dims.push_back(row[i]);
    const Shape x(dims);
    const char* over = row.rank() == 2 ? "heads" : "mlp";
    cases.push_back({strf("layernorm_over_%s", over),
                     make_op<LayernormOp>(1e-6),
                     {x, row, row},
                     {false, true, true},
                     {kPlain, kVector, kVector}});
    cases.push_back({strf("layernorm_over_%s_grad", over),
                     make_op<LayernormGradOp>(1e-6, true),
                     {x, row, x},
                     {false, true, false},
                     {kPlain, kVector, kPlain}});
    cases.push_back({strf("rmsnorm_over_%s", over),
                     make_op<RmsnormOp>(1e-6),
                     {x, row},
                     {false, true},
                     {kPlain, kVector}});
  }
}

void add_simple_norms(std::vector<OpCase>& cases) {
  for (const int64_t width : {50, 768})
    for (const double eps : {1e-6, 0.1}) {
      const Shape row = {{'D', width}}, x = {{'B', 2}, {'N', 5}, {'D', width}};
      const std::string name =
          strf("simplenorm_%lld%s", static_cast<long long>(width), eps < 0.1 ? "" : "_large_eps");
      cases.push_back({name, make_op<RmsnormOp>(eps, true), {x, row}, {false, true}, {kPlain, kVector}});
      cases.push_back({name + "_grad",
                       make_op<RmsnormGradOp>(eps, true, true),
                       {x, row, x},
                       {false, true, false},
                       {kPlain, kVector, kPlain}});
    }
}

void add_qk_rmsnorms(std::vector<OpCase>& cases) {
  for (const bool simple : {false, true})
    for (const int64_t size : {16, 18}) {
      const Dim e('E', size);
      const Shape qkv = {{'B', 3}, {'N', 17}, {'T', 3}, {'H', 3}, e};
      const std::string name =
          strf("qk_%s_%lld", simple ? "simplenorm" : "rmsnorm", static_cast<long long>(size));
      cases.push_back({name,
                       make_op<QkRmsnormOp>(size == 16 ? 1e-6 : 0.1, simple),
                       {qkv, {e}, {e}},
                       {false, true, true},
                       {kPlain, kVector, kVector}});
      for (const bool trained : {false, true})
        cases.push_back({name + (trained ? "_grad_trained" : "_grad"),
                         make_op<QkRmsnormGradOp>(size == 16 ? 1e-6 : 0.1, trained, simple),
                         {qkv, {e}, {e}, qkv},
                         {false, true, true, false},
                         {kPlain, kVector, kVector, kPlain}});
    }
}

}  // namespace

bool on_cpus_alone(const OpCase& c) {
  const Op& op = *c.op;
  if (is<QkRmsnormOp, QkRmsnormGradOp, SelfAttentionOp, SelfAttentionGradOp>(op)) return true;
  if (const auto* norm = dynamic_cast<const RmsnormOp*>(&op)) return norm->simple();
  if (const auto* norm = dynamic_cast<const RmsnormGradOp*>(&op)) return norm->simple();
  if (const auto* act = dynamic_cast<const ActivateOp*>(&op)) return act->act() > ActKind::kSigmoid;
  const auto* act = dynamic_cast<const ActivateGradOp*>(&op);
  return act && act->act() > ActKind::kSigmoid;
}

void add_norm_cases(std::vector<OpCase>& cases) {
  add_inner_norms(cases);
  add_simple_norms(cases);
  add_qk_rmsnorms(cases);
}

}  // namespace vitrail
