#include "runtime/transfer.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "runtime/rank_context.h"

namespace vitrail {
namespace {

TEST(Transfer, WhatIsNotGivenBecomesZeroInEveryType) {
  RankContext rank(cpu_device(1));
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const TensorDesc desc{dtype, {{'B', 2}, {'D', 5}}};
    std::vector<std::byte> memory(desc.bytes(), std::byte{0x3c});
    const TensorView view(memory.data(), desc);
    const std::vector<float> given = {1, -2, 0.5f, 4};
    write_floats(rank, view, given);
    std::vector<float> found(10);
    read_floats(rank, view, found);
    EXPECT_EQ(found, (std::vector<float>{1, -2, 0.5f, 4, 0, 0, 0, 0, 0, 0})) << to_string(dtype);
  }
}

}  // namespace
}  // namespace vitrail
