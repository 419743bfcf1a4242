// Tests that need a GPU: skipped by name, with the reason, where none can be used.
#pragma once

#include <gtest/gtest.h>

#include "backend/cuda/kernels.h"

namespace vitrail {

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  }
};

}  // namespace vitrail
