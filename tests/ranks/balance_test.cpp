// Shares of a micro-batch as data: what mesh.balance may say, the nearest that would do, and shares by speed.
#include "train/balance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "train/helpers/tiny_run.h"
#include "train/run_balance.h"
#include "train/train_config.h"

namespace vitrail {
namespace {

using Shares = std::vector<int64_t>;

TEST(Balance, IsReadAsOneTextOrAsSeveral) {
  const Shares wanted = {24, 24, 16};
  EXPECT_EQ(parse_balance({"24", "24", "16"}).shares, wanted);
  EXPECT_EQ(parse_balance({"[24,24,16]"}).shares, wanted);
  EXPECT_EQ(parse_balance({"24, 24, 16"}).shares, wanted);
  EXPECT_TRUE(parse_balance({"auto"}).measured);
  EXPECT_TRUE(parse_balance({}).even());
  // What says it all replaces what stood before it, as another --set does.
  EXPECT_TRUE(parse_balance({"[24,24,16]", "auto"}).measured);
  EXPECT_EQ(parse_balance({"auto", "[24,24,16]"}).shares, wanted);
  EXPECT_TRUE(parse_balance({"[24,24,16]", ""}).even());
  for (const char* wrong : {"fast", "24,x", "0,24", "-8", "1.5"})
    EXPECT_THROW(parse_balance({wrong}), Error) << wrong;
  EXPECT_EQ(parse_balance(parse_balance({"[24,24,16]"}).texts()).shares, wanted);
}

TEST(Balance, EvaluationsAreCutInTheSameProportion) {
  const std::vector<CutTable> tables = cuts_by_shares({12, 8, 4}, 48);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].cuts, (Shares{0, 12, 20, 24}));
  EXPECT_EQ(tables[1].cuts, (Shares{0, 24, 40, 48}));
  EXPECT_EQ(cuts_by_shares({12, 8, 4}, 24).size(), 1u);
}

TEST(MeshText, NamesAnAxisOnce) {
  MeshConfig mesh;
  take_mesh("dp=2,tp=4,zero=1,tokens_on_tp", mesh);
  EXPECT_EQ(mesh.dp, 2);
  EXPECT_EQ(mesh.tp, 4);
  EXPECT_TRUE(mesh.tokens_on_tp);
  EXPECT_THROW(take_mesh("dp=2,tp=2,dp=1", mesh), Error);
}

TEST(MeshText, NamesTheAxesThatAreSharedAndTheTokens) {
  EXPECT_EQ(mesh_text({.dp = 1}), "dp=1");
  EXPECT_EQ(mesh_text({.dp = 1, .tp = 4}), "tp=4");
  EXPECT_EQ(mesh_text({.dp = 2, .tp = 4, .tokens_on_tp = true}), "dp=2 tp=4 tokens_on_tp");
}

std::string refusal(const Shares& shares, int64_t images, int64_t ranks, int64_t unit) {
  try {
    require_shares(shares, images, ranks, unit);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.message() + " | " + error.hint();
  }
  return "";
}

TEST(Balance, WrongSharesAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal({24, 24, 16}, 64, 3, 8), "");
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string sum = refusal({24, 24, 12}, 64, 3, 4);
  EXPECT_TRUE(has(sum, "60 images of a micro-batch of 64") && has(sum, "[28,24,12]")) << sum;
  const std::string group = refusal({25, 23, 16}, 64, 3, 8);
  EXPECT_TRUE(has(group, "25 of rank 0") && has(group, "[24,24,16]")) << group;
  const std::string count = refusal({32, 32}, 64, 3, 8);
  EXPECT_TRUE(has(count, "2 of them for mesh.dp 3") && has(count, "mesh.balance=[")) << count;
  EXPECT_TRUE(has(refusal({8, 8}, 8, 2, 8), "at least 16"));
}

// Whatever was asked for, what is named in its place is accepted.
TEST(Balance, TheNearestSharesWouldDo) {
  for (int64_t unit : {1, 2, 8})
    for (int64_t ranks : {2, 3, 5})
      for (int64_t images : {40, 64, 80})
        for (const Shares& asked : {Shares{1}, Shares{100, 1, 1}, Shares{7, 9, 11, 13, 15}, Shares{64, 64}}) {
          const Shares nearest = nearest_shares(asked, images, ranks, unit);
          EXPECT_EQ(refusal(nearest, images, ranks, unit), "") << shares_text(nearest);
        }
}

TEST(Balance, APlaceIsAsSlowAsItsSlowestRank) {
  Mesh mesh;
  mesh.sizes[static_cast<size_t>(Axis::kData)] = 2;
  mesh.sizes[static_cast<size_t>(Axis::kTensor)] = 3;
  EXPECT_EQ(largest_by_place(mesh, {1, 5, 2, 4, 3, 0}), (std::vector<double>{5, 4}));
}

TEST(Balance, SharesFollowSpeedInWholeGroups) {
  EXPECT_EQ(shares_by_speed(88, 2, {{0, 0.25}, {0, 0.25}, {0, 0.5}, {0, 1}}), (Shares{32, 32, 16, 8}));
  EXPECT_EQ(shares_by_speed(64, 8, {{0, 1}, {0, 1}, {0, 100}}), (Shares{32, 24, 8}));  // a group at least
  EXPECT_EQ(shares_by_speed(30, 4, {{0, 1}, {0, 1}}), (Shares{16, 14}));  // the last group is shorter
  // A rank with much to do beside its images gets fewer.
  EXPECT_EQ(shares_by_speed(20, 1, {{10, 1}, {0, 1}}), (Shares{5, 15}));
  // Memory binds, unless nothing would fit.
  EXPECT_EQ(shares_by_speed(24, 4, {{0, 1, 8}, {0, 1}}), (Shares{8, 16}));
  EXPECT_EQ(shares_by_speed(24, 4, {{0, 1, 4}, {0, 1, 8}}), (Shares{12, 12}));
}

// No exchange of one group makes the slowest rank faster.
TEST(Balance, SharesBySpeedAreTheBest) {
  const std::vector<PlaceSpeed> places = {{0.3, 0.25}, {0.1, 0.31}, {0.2, 0.52}, {0.4, 1.07}};
  const auto slowest = [&](const Shares& shares) {
    double most = 0;
    for (size_t r = 0; r < shares.size(); ++r)
      most = std::max(most, places[r].fixed_s + places[r].per_image_s * static_cast<double>(shares[r]));
    return most;
  };
  const Shares found = shares_by_speed(96, 2, places);
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), int64_t{0}), 96);
  for (size_t a = 0; a < found.size(); ++a)
    for (size_t b = 0; b < found.size(); ++b) {
      Shares other = found;
      other[a] -= 2, other[b] += 2;
      EXPECT_GE(slowest(other), slowest(found));
    }
}

TEST(Balance, EvaluationsAreCutInProportion) {
  const std::vector<CutTable> tables = cuts_by_shares({12, 8, 4}, 15);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].cuts, (Shares{0, 12, 20, 24}));
  EXPECT_EQ(tables[1].cuts.back(), 15);
  EXPECT_EQ(shares_of_cuts(tables[1].cuts), (Shares{8, 5, 2}));
  EXPECT_EQ(cuts_by_shares({12, 12}, 24).size(), 1U);
}

TEST(Balance, BatchesFollowFromShares) {
  TrainConfig config;
  config.data.train = "synthetic:3x8x8x4x40";
  config.mesh.balance = {"[24,24,16]"};
  EXPECT_EQ(resolved(config, 3).train.batch, 64);
  config.train.batch = 128;
  EXPECT_EQ(resolved(config, 3).train.accumulation, 2);
  const TrainConfig whole = resolved(config, 3);
  EXPECT_EQ(to_json(resolved(whole, 3)), to_json(whole));  // what is written is read as the same
  config.train.batch = 100;
  EXPECT_THROW(resolved(config, 3), Error);
  config.train.batch = 64;
  EXPECT_THROW(resolved(config, 2), Error);
}

// Words with one blank between them.
std::string squeezed(const std::string& text) {
  std::string words;
  for (const char c : text)
    if (c != ' ' || (!words.empty() && words.back() != ' ' && words.back() != '\n')) words += c;
  return words;
}

// A share of 8 images twice an update in half a second are 32 a second.
TEST(RunBalance, TellsWhatEachRankDid) {
  TrainConfig config = testing::tiny_config(1);
  config.mesh.dp = 2, config.mesh.balance = {"[8,4]"};
  config.train.batch = 24, config.train.accumulation = 2;
  RunSetup setup = set_up(config, {}, {0, 2, 2});
  const Team alone(nullptr);
  RunBalance balance(setup, alone);
  EXPECT_FALSE(balance.asked()) << "of several ranks";
  balance.share_memory(3 << 20);
  const std::string table = squeezed(balance.table({0.5, 0.25}));
  EXPECT_TRUE(
      table.starts_with("ranks and their own work in an update\nrank share img/s of its own memory predicted "
                        "measured"))
      << table;
  EXPECT_NE(table.find("0 8 32.0 3.00 MiB 500.0 ms"), std::string::npos) << table;
  EXPECT_NE(table.find("1 4 32.0 250.0 ms"), std::string::npos) << table;
}

}  // namespace
}  // namespace vitrail
