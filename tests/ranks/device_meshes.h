// The meshes that run on devices with memory of their own, and what is expected of them: the losses of one
// rank, and memory as planned. Run on the processor with stand-ins for transports, and on GPUs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "mesh_run.h"

namespace vitrail {

inline std::vector<MeshCase> device_meshes(int ranks) {
  const auto zero = [](int stage) {
    return [stage](StepConfig& s) { s.zero = stage, s.bucket_bytes = 20000; };
  };
  const auto offload = [](StepConfig& s) {
    s.zero = 1, s.bucket_bytes = 20000;
    s.offload = Offload::kOptimizer;
  };
  const auto parameters = [](StepConfig& s) {
    s.zero = 3, s.bucket_bytes = 20000;
    s.offload = Offload::kParameters;
  };
  const auto tokens = [](StepConfig& s) { s.distribution.tokens_on_tp = true; };
  if (ranks == 2)
    return {{"dp2", {2, 1, 1}, zero(0)},
            {"zero1", {2, 1, 1}, zero(1)},
            {"zero3", {2, 1, 1}, zero(3)},
            {"offload", {2, 1, 1}, offload},
            {"parameters", {2, 1, 1}, parameters, 2},
            {"accumulated", {2, 1, 1}, zero(2), 2},
            {"tp2", {1, 2, 1}},
            {"tp2_tokens", {1, 2, 1}, tokens},
            {"sp2", {1, 1, 2}}};
  return {{"dp3", {3, 1, 1}, zero(1)}, {"sp3", {1, 1, 3}}, {"dp2_tp2", {2, 2, 1}, zero(3)}};
}

// Compares with one rank on the same kind of device.
inline MeshOutcome expect_losses_of_one_rank(const MeshCase& c, const MeshDevices& devices,
                                             int64_t updates = 4) {
  MeshCase whole = c;
  whole.mesh = {1, 1, 1};
  const MeshOutcome one = run_mesh(whole, DType::kF32, updates, devices);
  MeshOutcome many = run_mesh(c, DType::kF32, updates, devices);
  if (::testing::Test::HasFailure()) return many;
  for (size_t i = 0; i < one.losses.size(); ++i)
    EXPECT_NEAR(many.losses[i], one.losses[i], 1e-5 * std::abs(one.losses[i])) << c.name << " update " << i;
  for (size_t r = 0; r < many.planned.size(); ++r)
    EXPECT_EQ(many.planned[r], many.allocated[r]) << c.name << " rank " << r;
  return many;
}

inline void expect_same_values(const MeshOutcome& a, const MeshOutcome& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  ASSERT_EQ(a.values.size(), b.values.size());
  for (const auto& [name, values] : a.values) EXPECT_EQ(values, b.values.at(name)) << what << ": " << name;
}

}  // namespace vitrail
