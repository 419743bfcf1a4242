// The same training run on any mesh: losses and weights of several ranks against those of one, in f32 on the CPU
// backend and in f64 on the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "mesh_run.h"

namespace vitrail {
namespace {

void tokens_on_tp(StepConfig& step) {
  step.distribution.tokens_on_tp = true;
}
void recompute_blocks(StepConfig& step) {
  step.recompute = {Recompute::kBlock, 1};
}
void recompute_mlps(StepConfig& step) {
  step.recompute = {Recompute::kMlp, 1};
}
void with_lora(StepConfig& step) {
  step.lora = {.rank = 4, .alpha = 8, .mlp = true};
}
// What a plain model leaves out: norms of q and k, scaled branches, mean pooling, no class token.
void all_parts(StepConfig& step) {
  VitConfig& m = step.model;
  m.qk_norm = m.layer_scale = true;
  m.pool = Pool::kMean, m.norm_place = NormPlace::kAfterPool, m.class_token = false;
}
void with_lamb(StepConfig& step) {
  step.optim.name = "lamb";
}

std::function<void(StepConfig&)> zero(int stage, size_t bucket_bytes = 20000) {
  return [=](StepConfig& step) { step.zero = stage, step.bucket_bytes = bucket_bytes; };
}
std::function<void(StepConfig&)> both(std::function<void(StepConfig&)> a, std::function<void(StepConfig&)> b) {
  return [=](StepConfig& step) { a(step), b(step); };
}

std::vector<MeshCase> mesh_cases() {
  return {
      {"dp2", {2, 1, 1}},
      {"dp3", {3, 1, 1}},
      {"dp8", {8, 1, 1}},
      {"dp5_uneven", {5, 1, 1}},
      {"dp2_accumulated", {2, 1, 1}, {}, 4},
      {"dp2_recomputed", {2, 1, 1}, recompute_blocks},
      {"tp2", {1, 2, 1}},
      {"tp4", {1, 4, 1}},
      {"tp3_uneven", {1, 3, 1}},
      {"tp2_tokens", {1, 2, 1}, tokens_on_tp},
      {"tp4_tokens", {1, 4, 1}, tokens_on_tp},
      {"sp2", {1, 1, 2}},
      {"sp3", {1, 1, 3}},
      {"dp2_tp2", {2, 2, 1}},
      {"dp2_tp2_tokens_recomputed", {2, 2, 1}, [](StepConfig& s) { tokens_on_tp(s), recompute_blocks(s); }},
      {"dp2_sp2_tp2", {2, 2, 2}},
      {"dp3_lamb", {3, 1, 1}, with_lamb},
      {"dp2_small_buckets", {2, 1, 1}, zero(0, 5000)},
      {"zero1_dp2", {2, 1, 1}, zero(1)},
      {"zero1_dp3_accumulated", {3, 1, 1}, zero(1), 2},
      {"zero2_dp2", {2, 1, 1}, zero(2)},
      {"zero2_dp4_accumulated", {4, 1, 1}, zero(2), 4},
      {"zero3_dp2", {2, 1, 1}, zero(3)},
      {"zero3_dp3_recomputed", {3, 1, 1}, both(zero(3), recompute_blocks)},
      {"zero3_dp4_accumulated", {4, 1, 1}, zero(3), 4},
      {"zero1_lamb", {2, 1, 1}, both(zero(1), with_lamb)},
      {"zero3_lamb", {3, 1, 1}, both(zero(3), with_lamb)},
      {"tp2_lamb", {1, 2, 1}, with_lamb},
      {"zero2_tp2_lamb", {2, 2, 1}, both(zero(2), with_lamb)},
      {"zero2_lora", {2, 1, 1}, both(zero(2), with_lora)},
      {"zero1_dp2_tp2", {2, 2, 1}, zero(1)},
      {"zero3_dp2_tp2_tokens", {2, 2, 1}, both(zero(3), tokens_on_tp)},
      {"zero2_dp2_sp2", {2, 1, 2}, zero(2)},
      {"dp2_mlps_recomputed", {2, 1, 1}, recompute_mlps},
      {"tp2_lora", {1, 2, 1}, with_lora},
      {"tp2_tokens_lora", {1, 2, 1}, [](StepConfig& s) { tokens_on_tp(s), with_lora(s); }},
      {"sp2_lora", {1, 1, 2}, with_lora},
      {"tp2_all_parts", {1, 2, 1}, all_parts},
      {"tp2_tokens_all_parts", {1, 2, 1}, [](StepConfig& s) { tokens_on_tp(s), all_parts(s); }},
      {"sp3_all_parts_recomputed", {1, 1, 3}, [](StepConfig& s) { all_parts(s), recompute_blocks(s); }},
  };
}

void expect_equal(const MeshCase& c, DType master, double relative) {
  MeshCase whole = c;
  whole.mesh = {1, 1, 1};
  constexpr int64_t kUpdates = 4;
  const MeshOutcome one = run_mesh(whole, master, kUpdates), many = run_mesh(c, master, kUpdates);
  if (testing::Test::HasFailure()) return;
  for (size_t i = 0; i < one.losses.size(); ++i)
    EXPECT_NEAR(many.losses[i], one.losses[i], relative * std::abs(one.losses[i])) << "update " << i;
  for (size_t r = 0; r < many.planned.size(); ++r) EXPECT_EQ(many.planned[r], many.allocated[r]) << "rank " << r;
  ASSERT_EQ(one.values.size(), many.values.size());
  if (master != DType::kF64) return;
  for (const auto& [name, values] : one.values)
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(many.values.at(name)[i], values[i], 1e-9) << name << " element " << i;
}

void PrintTo(const MeshCase& c, std::ostream* out) {
  *out << c.name;
}

class MeshEquality : public testing::TestWithParam<MeshCase> {};

TEST_P(MeshEquality, LossesOfOneRankInF32) {
  expect_equal(GetParam(), DType::kF32, 1e-5);
}

TEST_P(MeshEquality, LossesOfOneRankInF64) {
  expect_equal(GetParam(), DType::kF64, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Meshes, MeshEquality, testing::ValuesIn(mesh_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace vitrail
