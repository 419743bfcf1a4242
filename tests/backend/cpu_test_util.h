// What the CPU kernel tests share: repeatable random values, a context with scratch, every level of the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/host/levels.h"

namespace vitrail {
using namespace cpu;
}  // namespace vitrail

namespace vitrail::testing {

using Floats = std::vector<float>;

inline Floats random_floats(int64_t count, uint32_t seed, float spread = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-spread, spread);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <typename Body>
inline void for_every_level(const Body& body) {
  for (IsaLevel level : available_isa_levels()) {
    SCOPED_TRACE(to_string(level));
    body(isa_kernels(level));
  }
}

// Every sign, many exponents, dense around zero; and the values where fits are joined or clamped.
inline Floats arguments(float limit) {
  Floats x = {0.0f, -0.0f, 8.0f, -8.0f, 1e-30f, -1e-30f, limit, -limit};
  for (float v = 1e-6f; v < limit; v *= 1.0005f) x.insert(x.end(), {v, -v});
  return x;
}

// A pool, a level and the requested scratch, filled with NaN so that reading it shows.
class TestContext {
 public:
  TestContext(int threads, const IsaKernels& isa, ScratchNeed need)
      : pool_(threads), isa_(isa), bytes_(need.total(threads)), floats_(bytes_ / sizeof(float) + 16) {
    std::fill(floats_.begin(), floats_.end(), std::nanf(""));
  }
  CpuContext context(CpuParallelism parallel = {}) {
    void* start = floats_.data();
    size_t space = floats_.size() * sizeof(float);
    std::align(64, bytes_, start, space);
    return {pool_, isa_, parallel, {static_cast<std::byte*>(start), bytes_}};
  }

 private:
  ThreadPool pool_;
  const IsaKernels& isa_;
  size_t bytes_;
  Floats floats_;
};

}  // namespace vitrail::testing
