// The same training run on any mesh: losses and weights of several ranks against those of one, in f32 on the
// CPU backend and in f64 on the reference. With VITRAIL_TEST_LONG in the environment, the whole table of the
// wider model, 10 updates each; otherwise a few of its rows and updates.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "mesh_cases.h"
#include "tensor/layout.h"

namespace vitrail {
namespace {

bool is_long() {
  return std::getenv("VITRAIL_TEST_LONG") != nullptr;
}

// One rank without accumulation or recomputation, once a process.
const MeshOutcome& one_rank(const MeshModel& model, int64_t batch, DType master, int64_t updates) {
  static std::map<std::tuple<std::string, int64_t, DType, int64_t>, MeshOutcome> known;
  const auto key = std::make_tuple(std::string(model.name), batch, master, updates);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = run_mesh({.name = "one rank", .model = model, .batch = batch}, master, updates);
}

// The rows of an evaluation are those of one rank; all ranks of a pipeline have them.
void expect_equal_logits(const MeshCase& c, const MeshOutcome& one, const MeshOutcome& many) {
  const Mesh mesh{c.mesh};
  for (int rank = 0; rank < mesh.world(); ++rank) {
    const std::vector<float>& rows = many.logits[static_cast<size_t>(rank)];
    const size_t first = static_cast<size_t>(many.first_row[static_cast<size_t>(rank)]) * 10;
    ASSERT_LE(first + rows.size(), one.logits[0].size());
    for (size_t i = 0; i < rows.size(); ++i)
      EXPECT_NEAR(rows[i], one.logits[0][first + i], 1e-4) << "rank " << rank << " logit " << i;
  }
}

void expect_equal(const MeshCase& c, DType master, double relative, int64_t updates) {
  const MeshOutcome& one = one_rank(c.model, c.batch, master, updates);
  const MeshOutcome many = run_mesh(c, master, updates);
  if (::testing::Test::HasFailure()) return;
  for (size_t i = 0; i < one.losses.size(); ++i)
    EXPECT_NEAR(many.losses[i], one.losses[i], relative * std::abs(one.losses[i])) << "update " << i;
  for (size_t r = 0; r < many.planned.size(); ++r)
    EXPECT_EQ(many.planned[r], many.allocated[r]) << "rank " << r;
  expect_equal_logits(c, one, many);
  ASSERT_EQ(one.values.size(), many.values.size());
  if (master != DType::kF64) return;
  for (const auto& [name, values] : one.values)
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(many.values.at(name)[i], values[i], 1e-9) << name << " element " << i;
}

const auto kCaseName = [](const auto& test) { return test.param.name; };

class MeshEquality : public ::testing::TestWithParam<MeshCase> {};

TEST_P(MeshEquality, LossesOfOneRankInF32) {
  expect_equal(GetParam(), DType::kF32, 1e-5, 4);
}
TEST_P(MeshEquality, LossesOfOneRankInF64) {
  expect_equal(GetParam(), DType::kF64, 1e-9, 4);
}
INSTANTIATE_TEST_SUITE_P(Meshes, MeshEquality, ::testing::ValuesIn(narrow_cases()), kCaseName);

class MeshPipeline : public ::testing::TestWithParam<MeshCase> {};

TEST_P(MeshPipeline, LossesOfOneRankInF32) {
  expect_equal(GetParam(), DType::kF32, 1e-5, is_long() ? 10 : 3);
}
TEST_P(MeshPipeline, LossesOfOneRankInF64) {
  if (!is_long()) GTEST_SKIP() << "minutes in plain loops: VITRAIL_TEST_LONG runs it";
  expect_equal(GetParam(), DType::kF64, 1e-9, 3);
}
INSTANTIATE_TEST_SUITE_P(Stages, MeshPipeline, ::testing::ValuesIn(pipeline_cases(is_long())), kCaseName);

class MeshTable : public ::testing::TestWithParam<MeshCase> {};

TEST_P(MeshTable, LossesOfOneRankInF32) {
  expect_equal(GetParam(), DType::kF32, 1e-5, is_long() ? 10 : 3);
}
TEST_P(MeshTable, LossesOfOneRankInF64) {
  if (!is_long()) GTEST_SKIP() << "minutes in plain loops: VITRAIL_TEST_LONG runs it";
  MeshCase c = GetParam();
  c.batch = kMixed * c.mesh[0] * c.accumulation;  // the smallest: plain loops take their time
  expect_equal(c, DType::kF64, 1e-9, 10);
}
INSTANTIATE_TEST_SUITE_P(Wide, MeshTable, ::testing::ValuesIn(wide_cases(is_long())), kCaseName);

}  // namespace
}  // namespace vitrail
