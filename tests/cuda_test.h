// Tests that need a GPU: they are skipped by name, with the reason, where none can be used.
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

// Returns why code for Hopper's own instructions cannot run here; empty: it can. tools/gpu_test.sh knows this
// text: on another GPU it is no fault.
inline std::string hopper_problem() {
  if (std::string problem = cuda_report().problem; !problem.empty()) return problem;
  return cuda_device().compute == 90 ? "" : "needs compute capability 9.0";
}

}  // namespace vitrail
