// A run that goes on with fewer ranks keeps its batch, by more accumulation.
#include <gtest/gtest.h>

#include "base/text.h"
#include "ranks/fewer_settings.h"

namespace vitrail {
namespace {

TrainConfig with(int64_t batch, int64_t accumulation, int64_t group) {
  TrainConfig config;
  config.data.train = "synthetic:3x8x8x4x40";
  config.train.batch = batch, config.train.accumulation = accumulation;
  if (group > 1) config.augment.mixup = 0.8, config.augment.mix_group = group;
  return config;
}

int64_t accumulation_of(const TrainConfig& config, int was, int now) {
  return resolved(applied(config, settings_for_fewer(config, was, now)), now).train.accumulation;
}

TEST(FewerRanks, AccumulateMore) {
  EXPECT_EQ(accumulation_of(with(64, 1, 1), 4, 2), 2);
  EXPECT_EQ(accumulation_of(with(64, 2, 1), 4, 1), 8);
  EXPECT_EQ(accumulation_of(with(64, 1, 4), 4, 3), 2);  // 32 in groups of 4 for three: 12 at most, not 16
  EXPECT_EQ(accumulation_of(with(64, 1, 1), 4, 4), 1);
  EXPECT_EQ(accumulation_of(with(10, 1, 1), 5, 4), 2);  // uneven shares: 5 for four
  EXPECT_EQ(accumulation_of(with(7, 1, 1), 7, 2), 1);   // 7 has no other divisor that two ranks can share
}

TEST(FewerRanks, KeepTheBatchAndTheGroups) {
  for (const int64_t group : {1, 2, 4})
    for (const int64_t batch : {16, 48, 60, 96})
      for (int was = 2; was * group <= batch && was <= 8; ++was)
        for (int now = 1; now < was; ++now) {
          const TrainConfig before = with(batch, 1, group);
          if (batch % group != 0) continue;
          const TrainConfig after = resolved(applied(before, settings_for_fewer(before, was, now)), now);
          EXPECT_EQ(after.train.batch, batch);
          EXPECT_EQ(batch / after.train.accumulation % group, 0);
          EXPECT_EQ(after.mesh.dp, now);
        }
}

TEST(FewerRanks, KeepTheModelsPartsTogether) {
  MeshConfig mesh;
  mesh.tp = 2;
  EXPECT_EQ(usable_ranks(mesh, 3), 2);
  EXPECT_EQ(usable_ranks(mesh, 1), 0);
  TrainConfig config = with(64, 1, 1);
  config.mesh.tp = 2;
  EXPECT_EQ(resolved(applied(config, settings_for_fewer(config, 4, 2)), 2).mesh.dp, 1);
  mesh.pp = 3;
  EXPECT_EQ(usable_ranks(mesh, 17), 12);
  config.mesh.pp = 2;
  EXPECT_EQ(resolved(applied(config, settings_for_fewer(config, 8, 4)), 4).mesh.dp, 1);
}

TEST(FewerRanks, MeasureSharesAnew) {
  TrainConfig config = with(64, 1, 1);
  config.mesh.balance = {"[16,16,24,8]"};
  EXPECT_EQ(applied(config, settings_for_fewer(config, 4, 2)).mesh.balance,
            (std::vector<std::string>{"auto"}));
}

}  // namespace
}  // namespace vitrail
