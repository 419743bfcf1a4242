#include "ops/attention.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

namespace {
AttentionStrides packed_part(int64_t parts, int64_t part, int64_t rows, int64_t heads, int64_t head_size) {
  const int64_t width = heads * head_size;
  return {part * width, rows * parts * width, parts * width, head_size};
}

void expect_packed(const Op& op, const Shape& shape, int64_t parts) {
  expect_last(op, shape, 'E');
  VT_CHECK(shape.rank() == 5 && shape.local('T') == parts, "%s: expected %lld packed parts, found %s",
           std::string(op.kind()).c_str(), static_cast<long long>(parts), to_string(shape).c_str());
}

std::string query_scope_text(QueryScope queries) {
  return queries == QueryScope::kClassToken ? "queries=class_token" : "";
}

QueryScope query_scope_of(const Op& op) {
  if (const auto* forward = dynamic_cast<const AttentionOp*>(&op)) return forward->queries();
  if (const auto* grad = dynamic_cast<const AttentionGradOp*>(&op)) return grad->queries();
  return QueryScope::kAllTokens;
}

double scores_of(const Op& op, DescSpan forward_ins) {
  const AttentionGeometry g = attention_geometry(op, forward_ins);
  return static_cast<double>(g.batch * g.heads * g.queries) * static_cast<double>(g.keys);
}
}  // namespace

std::string AttentionOp::attributes() const {
  return query_scope_text(queries_);
}
std::string AttentionGradOp::attributes() const {
  return query_scope_text(queries_);
}

std::vector<TensorDesc> AttentionOp::infer(DescSpan ins) const {
  if (ins.size() == 1) {
    const Shape& qkv = ins[0].shape;
    expect_packed(*this, qkv, 3);
    if (queries_ == QueryScope::kClassToken) return {{ins[0].dtype, {qkv[0], qkv[3], qkv[4]}}};
    return {{ins[0].dtype, {qkv[0], qkv[1], qkv[3], qkv[4]}}};
  }
  VT_CHECK(queries_ == QueryScope::kAllTokens,
           "attention: only packed tokens may leave queries to the first");
  expect_inputs(*this, ins, 2);
  const Shape &q = ins[0].shape, &kv = ins[1].shape;
  expect_packed(*this, kv, 2);
  VT_CHECK(q.rank() == 3, "attention: expected a query [S H E], found %s", to_string(q).c_str());
  expect_suffix(*this, q, {kv[3], kv[4]});
  return {{ins[0].dtype, {kv[0], q[0], q[1], q[2]}}};
}

AttentionGeometry attention_geometry(const Op& op, DescSpan ins) {
  const Shape& last = ins.back().shape;
  const int64_t rows = last[1].local, parts = last[2].local, heads = last[3].local, size = last[4].local;
  AttentionGeometry g{.batch = last[0].local,
                      .heads = heads,
                      .queries = query_scope_of(op) == QueryScope::kClassToken ? 1 : rows,
                      .keys = rows,
                      .head_size = size,
                      .q = packed_part(parts, 0, rows, heads, size),
                      .k = packed_part(parts, parts - 2, rows, heads, size),
                      .v = packed_part(parts, parts - 1, rows, heads, size),
                      .out = {}};
  if (ins.size() == 2) {
    g.queries = ins[0].shape[0].local;
    g.q = {0, 0, heads * size, size};  // the same queries for every image
  }
  g.out = packed_part(1, 0, g.queries, heads, size);
  return g;
}

double AttentionOp::flops(DescSpan ins, DescSpan) const {
  return scores_of(*this, ins) * (4.0 * static_cast<double>(ins.back().shape.local('E')) + 5.0);
}

double first_attention_flops(const TensorDesc& qkv, const TensorDesc& weight) {
  const double images = static_cast<double>(qkv.shape[0].local),
               tokens = static_cast<double>(qkv.shape[1].local),
               heads = static_cast<double>(qkv.shape[3].local);
  const double outputs = 3.0 * heads * static_cast<double>(qkv.shape[4].local);
  const double width = static_cast<double>(weight.elems()) / outputs;
  return images * (2.0 * outputs * width + heads * tokens * (4.0 * width + 5.0));
}

std::vector<TensorDesc> AttentionProbsOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& qkv = ins[0].shape;
  expect_packed(*this, qkv, 3);
  return {{ins[0].dtype, {qkv[0], qkv[3], qkv[1], Dim('M', qkv[1].local)}}};
}

double AttentionProbsOp::flops(DescSpan ins, DescSpan outs) const {
  return static_cast<double>(outs[0].elems()) * (2.0 * static_cast<double>(ins[0].shape.local('E')) + 5.0);
}

void AttentionOp::grad(GradRecorder& r) const {
  const bool probe = r.desc(r.out()).shape.has('S');
  const auto op = std::make_shared<AttentionGradOp>(queries_);
  const auto grads =
      probe ? r.add_all(op, {r.in(0), r.in(1), r.dout()}, "dx") : r.add_all(op, {r.in(0), r.dout()}, "dx");
  for (size_t i = 0; i < grads.size(); ++i)
    if (r.wants(i)) r.give(i, grads[i]);
}

std::vector<TensorDesc> AttentionGradOp::infer(DescSpan ins) const {
  VT_CHECK(ins.size() >= 2, "attention_grad: expected 2 or 3 inputs, found %zu", ins.size());
  const DescSpan forward = ins.first(ins.size() - 1);
  const TensorDesc out = AttentionOp(queries_).infer(forward)[0];
  expect_same(*this, {out.dtype, out.shape}, {out.dtype, ins.back().shape});
  if (forward.size() == 1) return {ins[0]};
  return {{accumulator_dtype(ins[0].dtype), ins[0].shape}, ins[1]};
}

double AttentionGradOp::flops(DescSpan ins, DescSpan) const {
  const double size = static_cast<double>(ins.back().shape.local('E'));
  return scores_of(*this, ins.first(ins.size() - 1)) * (10.0 * size + 10.0);
}

namespace {
// The longest sum runs over the keys or over a head's elements.
int64_t longest_sum(DescSpan ins) {
  return std::max(ins.back().shape[1].local, ins.back().shape.local('E'));
}
}  // namespace

int64_t AttentionOp::reduction_length(DescSpan ins) const {
  return longest_sum(ins);
}
int64_t AttentionProbsOp::reduction_length(DescSpan ins) const {
  return longest_sum(ins);
}
int64_t AttentionGradOp::reduction_length(DescSpan ins) const {
  const AttentionGeometry g = attention_geometry(*this, ins.first(ins.size() - 1));
  const int64_t summed_images = ins.size() == 3 ? g.batch : 1;  // a probe's gradient is shared by all images
  return std::max(g.keys * summed_images, g.head_size);
}

}  // namespace vitrail
