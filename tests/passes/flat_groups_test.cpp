// Flat groups and cuts by the element: who owns what of a bucket, where its pieces begin, how large a bucket
// is.
#include "passes/flat_groups.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/persistent.h"
#include "passes/distribute.h"
#include "passes/stages.h"

namespace vitrail {
namespace {

using Numbers = std::vector<int64_t>;

TensorDesc of_elems(int64_t elems) {
  return {DType::kF32, {{'D', elems}}};
}

// 5, 40 and 16 elements at multiples of 16: five units, of which the first of two ranks owns two.
Bucket three_members() {
  return {.name = "gradients/0",
          .members = {{"a", of_elems(5), 0}, {"b", of_elems(40), 16}, {"c", of_elems(16), 64}},
          .elems = 80};
}
Bucket one_frozen() {
  return {.members = {{"f", of_elems(20), 0}}, .elems = 32};
}

ZeroPlan zero_of(int rank, ZeroOptions options) {
  return {{three_members()}, {one_frozen()}, Mesh{{2, 1, 1, 1}, rank}, std::move(options)};
}

TEST(FlatGroups, ARankOwnsRangesOfWholeUnits) {
  EXPECT_EQ(three_members().pieces(2), (Numbers{0, 32, 80}));
  const struct {
    int rank;
    const char* name;
    int64_t begin, end;
  } rows[] = {{0, "a", 0, 5}, {0, "b", 0, 16},  {0, "c", 0, 0},
              {1, "a", 5, 5}, {1, "b", 16, 40}, {1, "c", 0, 16}};
  for (const auto& row : rows) {
    const auto window = zero_of(row.rank, {.stage = 1}).window(row.name);
    ASSERT_TRUE(window) << row.name;
    EXPECT_EQ(window->begin, row.begin) << row.rank << row.name;
    EXPECT_EQ(window->end, row.end) << row.rank << row.name;
    EXPECT_EQ(window->size(), row.end - row.begin);
  }
  EXPECT_FALSE(zero_of(0, {.stage = 1}).window("f")) << "frozen ones are shared out by stage 3";
  EXPECT_TRUE(zero_of(0, {.stage = 3}).window("f"));
  EXPECT_FALSE(zero_of(0, {.stage = 0}).window("a"));
}

TEST(FlatGroups, CopiesAndAveragesHaveGroupsOfTheirOwn) {
  const ZeroPlan plain = zero_of(1, {.stage = 1});
  ASSERT_EQ(plain.groups().size(), 1u);
  EXPECT_EQ(plain.groups()[0].name, "parameters/0");
  EXPECT_EQ(plain.groups()[0].cuts, (Numbers{0, 32, 80}));
  EXPECT_EQ(plain.groups()[0].piece_counts(), (std::vector<size_t>{32, 48}));
  EXPECT_TRUE(plain.groups()[0].whole);
  const ZeroPlan plan =
      zero_of(1, {.stage = 1, .copies = {low_copy_of("b", DType::kBF16)}, .averages = true});
  ASSERT_EQ(plan.groups().size(), 3u);
  const FlatGroup &full = plan.groups()[0], &low = plan.groups()[1], &averages = plan.groups()[2];
  EXPECT_EQ(full.elems, 32);
  EXPECT_EQ(full.cuts, (Numbers{0, 16, 32}));
  ASSERT_EQ(full.members.size(), 2u);
  EXPECT_EQ(full.members[1].name, "c");
  EXPECT_EQ(full.members[1].offset, 16);
  EXPECT_EQ(low.name, "parameters/0@bf16");
  EXPECT_EQ(low.dtype, DType::kBF16);
  EXPECT_EQ(low.cuts, (Numbers{0, 16, 48}));
  EXPECT_EQ(low.members[0].name, "b@bf16");
  EXPECT_EQ(low.members[0].offset, 0);
  EXPECT_EQ(low.members[0].desc.dtype, DType::kBF16);
  EXPECT_EQ(averages.name, "ema/0");
  EXPECT_EQ(averages.category, Category::kOptimizer);
  EXPECT_FALSE(averages.whole);
  EXPECT_EQ(averages.members.size(), 3u);
  EXPECT_EQ(averages.members[2].name, "ema/c");
  EXPECT_TRUE(plan.has_copy("b"));
  EXPECT_FALSE(plan.has_copy("a"));
  ASSERT_TRUE(plan.find("ema/b"));
  EXPECT_EQ(plan.find("ema/b")->member->offset, 16);
  EXPECT_FALSE(plan.find("b")) << "its copy stands in the group";
}

TEST(FlatGroups, StagesShareOutMoreAndMore) {
  const struct {
    ZeroOptions options;
    bool gradients, whole;
    int64_t sums;  // elements that rank 1 keeps
  } rows[] = {{{.stage = 1}, false, true, 80},
              {{.stage = 2}, true, true, 48},
              {{.stage = 2, .whole_sums = true}, false, true, 80},
              {{.stage = 3}, true, false, 48}};
  for (const auto& row : rows) {
    const ZeroPlan plan = zero_of(1, row.options);
    EXPECT_EQ(plan.shares_gradients(), row.gradients) << row.options.stage;
    EXPECT_EQ(plan.groups()[0].whole, row.whole) << row.options.stage;
    const std::vector<Value> values = plan.containers({three_members()});
    EXPECT_EQ(values[0].name, "gradients/0");
    EXPECT_EQ(values[0].desc.elems(), row.sums) << row.options.stage;
    EXPECT_EQ(values[0].category, Category::kGradients);
    EXPECT_EQ(values[1].desc.elems(), row.whole ? 80 : 48) << row.options.stage;
  }
  const ZeroPlan alone({three_members()}, {}, Mesh{{1, 1, 1, 1}, 0}, {.stage = 3});
  EXPECT_FALSE(alone.shared() || alone.shares_gradients());
  EXPECT_FALSE(ZeroPlan().active());
}

TEST(FlatGroups, FrozenParametersLieInPiecesToo) {
  for (const int rank : {0, 1}) {
    const std::vector<Value> values =
        zero_of(rank, {.stage = 3, .averages = true}).containers({three_members()});
    ASSERT_EQ(values.size(), 5u) << "sums, parameters, averages, the frozen group and its member";
    EXPECT_EQ(values[3].name, "frozen/0");
    const Value& frozen = values[4];
    EXPECT_EQ(frozen.name, "f");
    EXPECT_EQ(frozen.kind, ValueKind::kParameter);
    EXPECT_EQ(frozen.container, "frozen/0");
    EXPECT_EQ(frozen.container_offset, 0);
    EXPECT_EQ(frozen.desc.shape[0].offset, rank == 0 ? 0 : 16);
    EXPECT_EQ(frozen.desc.shape[0].local, rank == 0 ? 16 : 4);
    EXPECT_EQ(frozen.logical.elems(), 20);
  }
}

// Of members that lie whole in other ranks' pieces this rank has nothing, at the beginning.
TEST(FlatGroups, APieceOfNothingBeginsAtNothing) {
  const Bucket frozen{.members = {{"f", of_elems(16), 0}, {"g", of_elems(16), 16}}, .elems = 32};
  for (const int rank : {0, 1}) {
    const std::vector<Value> values =
        ZeroPlan({}, {frozen}, Mesh{{2, 1, 1, 1}, rank}, {.stage = 3}).containers({});
    ASSERT_EQ(values.size(), 3u) << "the frozen group and its members";
    for (const size_t member : {1u, 2u}) {
      const bool own = member == static_cast<size_t>(rank) + 1;
      EXPECT_EQ(values[member].desc.shape[0].local, own ? 16 : 0);
      EXPECT_EQ(values[member].desc.shape[0].offset, 0) << rank << values[member].name;
      EXPECT_EQ(values[member].container_offset, 0) << rank << values[member].name;
    }
  }
}

// Sums of `count` parameters of `elems` elements each.
Program sums_of(int count, int64_t elems) {
  Builder b;
  b.set_phase(Phase::kBackward);
  for (int i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    b.add_all<AccumulateOp>({b.state(gradient_name(name), of_elems(elems), Category::kGradients, name),
                             b.parameter(name, of_elems(elems))},
                            name);
  }
  return b.finish();
}

TEST(BucketSizes, AreAQuarterOfTheSumsOr25MiB) {
  constexpr int64_t kMiB = (1 << 20) / 4;  // elements
  EXPECT_EQ(make_buckets(sums_of(8, 64), {}, 0).size(), 4u);
  EXPECT_EQ(make_buckets(sums_of(12, 13 * kMiB), {}, 0).size(), 6u) << "two are more than 25 MiB";
  EXPECT_EQ(make_buckets(sums_of(8, 64), {}, 3 * 256).size(), 3u) << "as asked for";
  const std::vector<Bucket> buckets = make_buckets(sums_of(3, 20), {}, 2 * 128);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].name, "gradients/0");
  EXPECT_EQ(buckets[1].name, "gradients/1");
  EXPECT_EQ(buckets[0].elems, 64);
  EXPECT_EQ(buckets[0].members[1].offset, 32);
  EXPECT_EQ(buckets[0].members[1].parameter, "p1");
}

TEST(CutPlaces, FollowUnitsAndTables) {
  Distribution how{.mesh = {{2, 1, 2, 1}, 0}, .batch_unit = 4};
  EXPECT_EQ(cuts_of({'B', 20}, Axis::kData, how), (Numbers{0, 8, 20}));
  EXPECT_EQ(cuts_of({'R', 20}, Axis::kData, how), (Numbers{0, 8, 20})) << "pixels as the batch";
  EXPECT_EQ(cuts_of({'N', 5}, Axis::kSequence, how), (Numbers{0, 2, 5}));
  how.cuts = {{Axis::kData, 'B', {0, 5, 20}}};
  EXPECT_EQ(cuts_of({'R', 20}, Axis::kData, how), (Numbers{0, 5, 20}));
  EXPECT_EQ(cuts_of({'B', 24}, Axis::kData, how), (Numbers{0, 12, 24})) << "another batch";
  for (const Numbers& wrong : {Numbers{0, 20}, {1, 5, 20}, {0, 9, 5}}) {
    how.cuts = {{Axis::kData, 'B', wrong}};
    try {
      distribute(sums_of(1, 4), how);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "the cuts of B are no 2 parts from 0 on");
    }
  }
}

TEST(CutPlaces, WhatCannotBeCutIsToldWithWhatCan) {
  EXPECT_NO_THROW(require_divisible_heads(6, {{1, 3, 2, 1}, 0}));
  try {
    require_divisible_heads(6, {{5, 2, 2, 1}, 0});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "6 heads cannot be shared by mesh.tp 2 x mesh.sp 2 ranks");
    EXPECT_EQ(error.hint(), "tp x sp may be 1, 2, 3, 6");
  }
  for (const std::vector<int>& good : {std::vector<int>{}, {1, 2}, {2, 4}})
    EXPECT_NO_THROW(require_cuts(good, 5, 3));
  for (const std::vector<int>& bad : {std::vector<int>{1}, {0, 2}, {2, 2}, {3, 2}, {2, 5}, {1, 2, 3}})
    EXPECT_THROW(require_cuts(bad, 5, 3), Error) << bad.size();
}

TEST(CutPlaces, KeptValuesLieAsTheirPinsSay) {
  const Distribution how{.mesh = {{2, 2, 1, 1}, 0}};
  const auto layout = [&](ValueKind kind, Category category, const Shape& shape) {
    return pinned_layout({"v", {DType::kF32, shape}, kind, category}, how);
  };
  const Placed whole{};
  const Shape heads{{'H', 4}, {'D', 8}}, rows{{'B', 4}, {'D', 8}}, pixels{{'R', 4}, {'Y', 8}};
  EXPECT_EQ(layout(ValueKind::kParameter, Category::kParameters, heads)[Axis::kTensor], Placed::shard('H'));
  EXPECT_EQ(layout(ValueKind::kState, Category::kOptimizer, heads)[Axis::kTensor], Placed::shard('H'));
  EXPECT_EQ(layout(ValueKind::kInput, Category::kStaging, rows)[Axis::kData], Placed::shard('B'));
  EXPECT_EQ(layout(ValueKind::kInput, Category::kStaging, pixels)[Axis::kData], Placed::shard('R'));
  EXPECT_EQ(layout(ValueKind::kState, Category::kStaging, pixels)[Axis::kData], whole) << "stored ones";
  EXPECT_EQ(layout(ValueKind::kState, Category::kStaging, heads)[Axis::kTensor], whole) << "no parameter";
  EXPECT_EQ(layout(ValueKind::kInput, Category::kStaging, rows)[Axis::kTensor], whole);
}

}  // namespace
}  // namespace vitrail
