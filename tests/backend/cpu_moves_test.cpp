// Conversions of 16-bit floats over all their patterns, dropout bit by bit, and the packing of matrices.
#include <gtest/gtest.h>

#include <bit>

#include "backend/cpu_test_util.h"
#include "base/rng.h"
#include "ops/dropout.h"
#include "tensor/dtype.h"

namespace vitrail {
namespace {

using namespace testing;

struct HalfKind {
  Float16 half;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
};
constexpr HalfKind kHalves[] = {{Float16::kF16, f16_to_f32, f32_to_f16},
                                {Float16::kBF16, bf16_to_f32, f32_to_bf16}};

TEST(CpuConvert, WidensEveryPattern) {
  std::vector<uint16_t> patterns(65536 + 3);  // an odd count: the last vector is not whole
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  for_every_level([&](const IsaKernels& isa) {
    for (const HalfKind& kind : kHalves) {
      Floats wide(patterns.size());
      isa.widen(kind.half, patterns.data(), static_cast<int64_t>(patterns.size()), wide.data());
      for (size_t i = 0; i < wide.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(kind.widen(patterns[i]))) << i;
    }
  });
}

// Every pattern, its neighbours half a unit away on both sides, ties, and many others.
TEST(CpuConvert, NarrowsToNearestEven) {
  Floats values = {0.0f,     -0.0f,    INFINITY, -INFINITY, std::nanf("5"), -std::nanf("5"),
                   65519.0f, 65520.0f, 3e38f};
  for (const HalfKind& kind : kHalves) {
    for (uint32_t i = 0; i < 65536; i += 7) {
      const auto bits = std::bit_cast<uint32_t>(kind.widen(static_cast<uint16_t>(i)));
      for (uint32_t step : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
        values.push_back(std::bit_cast<float>(bits + step));
    }
  }
  for (uint64_t i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(counter_hash(1, i))));
  for_every_level([&](const IsaKernels& isa) {
    for (const HalfKind& kind : kHalves) {
      std::vector<uint16_t> narrow(values.size());
      isa.narrow(kind.half, values.data(), static_cast<int64_t>(values.size()), narrow.data());
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(narrow[i], kind.narrow(values[i])) << values[i];
    }
  });
}

TEST(CpuDropout, KeepsTheElementsTheOpKeeps) {
  const Floats x = random_floats(1003, 1);
  for_every_level([&](const IsaKernels& isa) {
    for (double p : {0.0, 0.1, 1.0 / 3, 0.5, 0.999}) {
      for (uint64_t start : {uint64_t{0}, uint64_t{12345678901}}) {
        Floats y(x.size());
        isa.drop_elements({.x = x.data(),
                           .y = y.data(),
                           .count = 1003,
                           .stream = 77,
                           .index = start,
                           .threshold = static_cast<uint64_t>(std::ceil(p * 0x1p53)),
                           .scale = 3});
        for (size_t i = 0; i < x.size(); ++i)
          ASSERT_EQ(y[i], dropout_keeps(77, start + i, p) ? x[i] * 3 : 0.0f) << p << " at " << i;
      }
    }
  });
}

TEST(CpuPacking, MatrixPanelsAreTheTransposedWeightsOnes) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 17}, {33, 40}, {16, 96}}) {
    const Floats b = random_floats(k * n, 1);
    Floats turned(b.size());
    for (int64_t i = 0; i < k * n; ++i)
      turned[static_cast<size_t>(i % n * k + i / n)] = b[static_cast<size_t>(i)];
    for_every_level([&, k = k, n = n](const IsaKernels& isa) {
      Floats direct(static_cast<size_t>(isa.packed_elems(n, k))), by_rows(direct.size());
      isa.pack_weights(turned.data(), n, k, by_rows.data());
      isa.pack_matrix(b.data(), n, k, n, k, direct.data());
      EXPECT_TRUE(same_bits(by_rows, direct)) << k << " " << n;
    });
  }
}

}  // namespace
}  // namespace vitrail
