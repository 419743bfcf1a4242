#include "ops/dropout.h"

#include <cmath>

#include "base/rng.h"
#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> DropoutOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_dim(*this, ins[0].shape, 'B');
  VT_CHECK(ins[1].dtype == DType::kI64 && ins[1].elems() == kCounterCount,
           "dropout: expected counters i64[Z%lld], found %s", static_cast<long long>(kCounterCount),
           to_string(ins[1]).c_str());
  return {ins[0]};
}

void DropoutOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<DropoutOp>({r.dout(), r.in(1)}, "dx", *this));
}

std::string DropoutOp::attributes() const {
  return strf("p=%g%s", probability_, unit_ == DropUnit::kSample ? " samples" : "");
}

uint64_t DropoutOp::threshold() const {
  return static_cast<uint64_t>(std::ceil(probability_ * 0x1p53));
}

uint64_t dropout_stream(uint64_t key, int64_t seed, int64_t step) {
  return counter_hash(counter_hash(key, static_cast<uint64_t>(seed)), static_cast<uint64_t>(step));
}

bool dropout_keeps(uint64_t stream, uint64_t index, double probability) {
  return static_cast<double>(counter_hash(stream, index) >> 11) * 0x1p-53 >= probability;
}

}  // namespace vitrail
