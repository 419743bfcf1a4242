#include "io/weight_resize.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <vector>

#include "nlohmann/json.hpp"
#include "source_root.h"

namespace vitrail {
namespace {

using Values = std::vector<float>;

// The goldens' input: one prefix row, then the grid.
Values table(PosGrid grid, int64_t dim) {
  Values values(static_cast<size_t>((1 + grid.cells()) * dim));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 37 % 64) - 32) / 16.0f;
  return values;
}

TEST(PosResize, EqualsTheFourPublishedRules) {
  std::ifstream file(VT_SOURCE_DIR "/tests/golden/pos_resize.json");
  const auto golden = nlohmann::json::parse(file);
  const int64_t dim = golden["dim"];
  int compared = 0;
  for (const auto& example : golden["cases"]) {
    SCOPED_TRACE(example["rule"].dump() + example["from"].dump() + example["to"].dump());
    const PosGrid from{example["from"][0], example["from"][1]}, to{example["to"][0], example["to"][1]};
    const Values source = table(from, dim);
    Values target(static_cast<size_t>((1 + to.cells()) * dim));
    resize_positions(*enum_from_name<PosResize>(example["rule"].get<std::string>()), source, from, target, to,
                     1, dim);
    for (int64_t d = 0; d < dim; ++d) EXPECT_EQ(target[d], source[d]) << "the prefix row changed";
    const std::vector<double> expected = example["values"];
    ASSERT_EQ(expected.size() + dim, target.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(target[i + dim], expected[i], 3e-6) << i;
    ++compared;
  }
  EXPECT_EQ(compared, 32);
}

TEST(PosResize, TheSameGridIsLeftAsItIs) {
  for (PosResize rule : {PosResize::kTimm, PosResize::kHf, PosResize::kTorchvision, PosResize::kJax}) {
    const PosGrid grid{3, 5};
    const Values source = table(grid, 4);
    Values target(source.size());
    resize_positions(rule, source, grid, target, grid, 1, 4);
    EXPECT_EQ(target, source) << enum_name(rule);
  }
}

TEST(PosResize, AConstantTableStaysConstant) {
  for (PosResize rule : {PosResize::kTimm, PosResize::kHf, PosResize::kTorchvision, PosResize::kJax}) {
    const Values source(14 * 14, 0.75f);
    Values target(9 * 21);
    resize_positions(rule, source, {14, 14}, target, {9, 21}, 0, 1);
    for (float value : target) EXPECT_NEAR(value, 0.75f, 1e-7) << enum_name(rule);
  }
}

// To one position and from one, by each rule's formula.
TEST(PosResize, TheEndsOfEveryRule) {
  using Row = std::vector<double>;
  const double far = 0.72753906250 / 3.38281250,
               near = 0.96386718750 / 3.38281250;  // cubic(3/8) and cubic(1/8), a = -1/2
  const std::pair<PosResize, Row> rows[] = {{PosResize::kTimm, {far, near, near, far}},
                                            {PosResize::kHf, {-0.09375, 0.59375, 0.59375, -0.09375}},
                                            {PosResize::kTorchvision, {1, 0, 0, 0}},
                                            {PosResize::kFlexivit, {0, 0.5, 0.5, 0}},
                                            {PosResize::kJax, {1, 0, 0, 0}}};
  for (const auto& [rule, expected] : rows) {
    const Row found = resize_matrix(rule, 4, 1);
    ASSERT_EQ(found.size(), 4u) << enum_name(rule);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << enum_name(rule) << " " << i;
    const Row spread = resize_matrix(rule, 1, 3);
    ASSERT_EQ(spread.size(), 3u) << enum_name(rule);
    for (double weight : spread) EXPECT_NEAR(weight, 1, 1e-12) << enum_name(rule);
  }
}

}  // namespace
}  // namespace vitrail
