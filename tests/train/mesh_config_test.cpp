// A mesh as settings: the ends of their ranges, the text of --mesh, what is said of one that does not fit.
#include "train/mesh_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "train/agreement.h"
#include "train/train_config.h"
#include "train/world.h"

namespace vitrail {
namespace {

// The error of a call, or an internal one where it does not fail.
Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, "nothing was thrown");
}

TEST(MeshConfig, EndsOfRanges) {
  const struct {
    const char* key;
    std::function<void(MeshConfig&, int64_t)> set;
    int64_t least, most;
  } rows[] = {
      {"mesh.dp", [](auto& c, int64_t n) { c.dp = n; }, 0, 4194304},
      {"mesh.tp", [](auto& c, int64_t n) { c.tp = n; }, 1, 65536},
      {"mesh.sp", [](auto& c, int64_t n) { c.sp = n; }, 1, 65536},
      {"mesh.pp", [](auto& c, int64_t n) { c.pp = n; }, 1, 65536},
      {"mesh.virtual_stages", [](auto& c, int64_t n) { c.virtual_stages = n; }, 1, 65536},
      {"mesh.zero", [](auto& c, int64_t n) { c.zero = n; }, 0, 3},
      {"mesh.bucket_mb", [](auto& c, int64_t n) { c.bucket_mb = static_cast<double>(n); }, 0, 1048576},
      {"mesh.tp", [](auto& c, int64_t n) { c.dp = 65536, c.tp = n; }, 1, 64},
      {"mesh.pp", [](auto& c, int64_t n) { c.tp = 256, c.sp = 128, c.pp = n; }, 1, 128},
      {"mesh.verify_every", [](auto& c, int64_t n) { c.verify_every = n; }, 0, INT64_MAX - 1}};
  for (const auto& row : rows)
    for (const int64_t n : {row.least - 1, row.least, row.most, row.most + 1}) {
      if (n == INT64_MAX) continue;
      MeshConfig config;
      row.set(config, n);
      const Error error = error_of([&] { validate(config); });
      const bool accepted = n >= row.least && n <= row.most;
      EXPECT_EQ(error.kind(), accepted ? ErrorKind::kInternal : ErrorKind::kConfig) << row.key << " " << n;
      if (!accepted) {
        EXPECT_NE(error.message().find(row.key), std::string::npos) << error.message();
      }
    }
}

TEST(MeshConfig, AnOffloadHasItsConditions) {
  MeshConfig config;
  config.offload = Offload::kParameters;
  for (const int64_t zero : {0, 1, 2, 3}) {
    config.zero = zero;
    EXPECT_EQ(error_of([&] { validate(config); }).hint(),
              zero == 3 ? "" : "mesh.zero=3, also on one rank, or mesh.offload=optimizer")
        << zero;
  }
  config.pp = 2;
  const Error error = error_of([&] { validate(config); });
  EXPECT_NE(error.message().find("mesh.offload is parameters with mesh.pp 2"), std::string::npos)
      << error.message();
}

TEST(MeshConfig, TheRanksThatAreLeftShareImages) {
  MeshConfig config;
  config.tp = 2, config.sp = 2;
  EXPECT_EQ(resolved(config, 12).dp, 3);
  config.dp = 3;
  EXPECT_EQ(resolved(config, 12).dp, 3);
  config.dp = 2;
  EXPECT_EQ(error_of([&] { resolved(config, 12); }).kind(), ErrorKind::kConfig);
  config = {}, config.pp = 3;
  EXPECT_EQ(resolved(config, 6).dp, 2);
  const Mesh mesh = mesh_of(resolved(config, 6), 4);
  EXPECT_EQ(mesh.rank, 4);
  EXPECT_EQ(mesh.size(Axis::kData), 2);
  EXPECT_EQ(mesh.size(Axis::kTensor), 1);
  EXPECT_EQ(mesh.size(Axis::kPipeline), 3);
}

// Nearer are those that change fewer ranks of a model; then those that come first as text.
TEST(MeshConfig, WhatDoesNotFitIsToldWithTheNearest) {
  const struct {
    int64_t dp, tp, sp, pp;
    const char *message, *hint;
  } rows[] = {
      {0, 3, 1, 1,
       "mesh.tp 3 x mesh.sp 1 does not divide the 4 ranks of this run (mesh.dp, not given, takes what is "
       "left)",
       "mesh.dp=1 mesh.tp=4 mesh.sp=1, or mesh.dp=2 mesh.tp=2 mesh.sp=1, or mesh.dp=1 mesh.tp=2 mesh.sp=2"},
      {3, 1, 1, 1, "mesh.dp 3 x mesh.tp 1 x mesh.sp 1 does not make the 4 ranks of this run",
       "mesh.dp=4 mesh.tp=1 mesh.sp=1, or mesh.dp=2 mesh.tp=1 mesh.sp=2, or mesh.dp=2 mesh.tp=2 mesh.sp=1"},
      {1, 1, 1, 3, "mesh.sp 1 x mesh.pp 3 does not make the 4 ranks of this run",
       "mesh.dp=1 mesh.tp=1 mesh.sp=1 mesh.pp=4, or mesh.dp=2 mesh.tp=1 mesh.sp=1 mesh.pp=2, or mesh.dp=1 "
       "mesh.tp=1 mesh.sp=2 mesh.pp=2"},
      {0, 1, 1, 3, "mesh.tp 1 x mesh.sp 1 x mesh.pp 3 does not divide the 4 ranks",
       "mesh.dp=1 mesh.tp=1 mesh.sp=1 mesh.pp=4, or mesh.dp=2 mesh.tp=1 mesh.sp=1 mesh.pp=2"},
      {0, 1, 8, 1, "mesh.sp 8 does not divide", "mesh.dp=1 mesh.tp=1 mesh.sp=4"}};
  for (const auto& row : rows) {
    const MeshConfig config{.dp = row.dp, .tp = row.tp, .sp = row.sp, .pp = row.pp};
    const Error error = error_of([&] { resolved(config, 4); });
    EXPECT_NE(error.message().find(row.message), std::string::npos) << error.message();
    EXPECT_EQ(error.message().find("mesh.dp 0"), std::string::npos) << error.message();
    EXPECT_TRUE(error.hint().starts_with(row.hint)) << error.hint();
  }
  EXPECT_EQ(error_of([] { resolved(MeshConfig{.tp = 1 << 16, .sp = 1 << 16}, 4); }).message(),
            "mesh.tp 65536 x mesh.sp 65536 are more than 4194304 ranks");
  const Error eight = error_of([] { resolved(MeshConfig{.dp = 1}, 8); });
  EXPECT_EQ(
      eight.hint(),
      "mesh.dp=4 mesh.tp=1 mesh.sp=2, or mesh.dp=4 mesh.tp=2 mesh.sp=1, or mesh.dp=8 mesh.tp=1 mesh.sp=1");
}

// Three heads are shared by one rank or three: of six ranks, by no two.
TEST(MeshConfig, WhatIsProposedCutsTheHeadsEvenly) {
  const Error three = error_of([] { resolved(MeshConfig{.tp = 4}, 6, [] { return int64_t{3}; }); });
  EXPECT_EQ(
      three.hint(),
      "mesh.dp=2 mesh.tp=3 mesh.sp=1, or mesh.dp=6 mesh.tp=1 mesh.sp=1, or mesh.dp=2 mesh.tp=1 mesh.sp=3");
  TrainConfig config;
  config.mesh.tp = 4;
  const auto hint = [&] { return error_of([&] { resolved(config, 6); }).hint(); };
  config.model.arch = "vit_tiny_patch16_224";
  EXPECT_EQ(hint(), three.hint());
  config.model.given = {"heads"}, config.model.fields.heads = 2;
  EXPECT_TRUE(hint().starts_with("mesh.dp=3 mesh.tp=2 mesh.sp=1, or mesh.dp=6 ")) << hint();
  config.model.given = {}, config.model.arch = "", config.model.init = "nowhere";
  EXPECT_TRUE(hint().starts_with("mesh.dp=2 mesh.tp=3 mesh.sp=1, or mesh.dp=1 mesh.tp=3 mesh.sp=2"))
      << hint();
}

TEST(MeshConfig, NeedlessSettingsAreNamed) {
  using S = std::string;
  const S none,
      verify = "mesh.verify_every compares several ranks", tokens = "mesh.tokens_on_tp needs mesh.tp above 1",
      whole = "mesh.accumulate=whole needs mesh.zero 2 or 3 and mesh.dp above 1", start = "no effect here: ";
  const auto mesh = [](int64_t dp, int64_t tp, int64_t zero) {
    return MeshConfig{.dp = dp, .tp = tp, .zero = zero};
  };
  const struct {
    MeshConfig config;
    bool verifies, tokens, whole;
    S text;
  } rows[] = {{mesh(1, 1, 0), false, false, false, none},
              {mesh(1, 1, 0), true, false, false, start + verify},
              {mesh(2, 1, 0), true, false, false, none},
              {mesh(1, 2, 0), true, true, false, none},
              {mesh(2, 1, 0), false, true, false, start + tokens},
              {mesh(2, 1, 1), false, false, true, start + whole},
              {mesh(1, 1, 2), false, false, true, start + whole},
              {mesh(2, 1, 2), false, false, true, none},
              {mesh(1, 1, 0), true, true, true, start + verify + ", " + tokens + ", " + whole}};
  for (const auto& row : rows) {
    MeshConfig config = row.config;
    config.verify_every = row.verifies ? 1 : 0;
    config.tokens_on_tp = row.tokens;
    config.accumulate = row.whole ? KeptSums::kWhole : KeptSums::kPiece;
    EXPECT_EQ(needless_text(config), row.text);
  }
}

TEST(MeshConfig, TheTextOfACommandLine) {
  MeshConfig mesh;
  take_mesh("dp=2,tp=3,sp=4,pp=5,zero=1,tokens_on_tp", mesh);
  EXPECT_EQ((std::vector<int64_t>{mesh.dp, mesh.tp, mesh.sp, mesh.pp, mesh.zero}),
            (std::vector<int64_t>{2, 3, 4, 5, 1}));
  EXPECT_TRUE(mesh.tokens_on_tp);
  take_mesh("tokens_on_tp=0,tp=1", mesh);
  EXPECT_FALSE(mesh.tokens_on_tp);
  EXPECT_EQ(mesh.tp, 1);
  EXPECT_EQ(mesh.dp, 2) << "what is not named stays";
  for (const char* wrong : {"dp", "dp=", "dp=x", "ep=2", "", "tokens_on_tp=x", "dp=2;tp=2", "zero"}) {
    const Error error = error_of([&] { take_mesh(wrong, mesh); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << wrong;
    EXPECT_NE(error.message().find("--mesh holds \""), std::string::npos) << error.message();
  }
  EXPECT_EQ(error_of([&] { take_mesh("tp=2,dp=2,tp=2", mesh); }).message(), "--mesh names \"tp\" twice");
}

TEST(MeshConfig, StagesOfAPipeline) {
  MeshConfig mesh{.pp = 3};
  const StageOptions by_cost = stages_of(mesh, 6, 12);
  EXPECT_EQ(by_cost.micros, 6);
  EXPECT_EQ(by_cost.begins, std::vector<int>());
  mesh.stages = {"blocks.3,blocks.6"};
  EXPECT_EQ(stages_of(mesh, 6, 12).begins, (std::vector<int>{3, 6}));
  mesh.zero = 1;
  EXPECT_NO_THROW(stages_of(mesh, 6, 12));
  for (const char* wrong :
       {"blocks.x,blocks.6", "block.3,blocks.6", "blocks.-1,blocks.6", "blocks.65537,blocks.6"}) {
    mesh.stages = {wrong};
    EXPECT_EQ(error_of([&] { stages_of(mesh, 6, 12); }).hint(),
              "mesh.stages=blocks.4,blocks.8: a block for each stage behind the first")
        << wrong;
  }
  mesh.stages = {"blocks.3,blocks.6"}, mesh.zero = 2;
  EXPECT_NE(error_of([&] { stages_of(mesh, 6, 12); }).message().find("mesh.zero is 2 with mesh.pp 3"),
            std::string::npos);
  const MeshConfig one{.virtual_stages = 2};
  EXPECT_EQ(error_of([&] { stages_of(one, 6, 12); }).kind(), ErrorKind::kConfig);
  EXPECT_EQ(stages_of({}, 6, 12).begins, std::vector<int>());
}

TEST(MeshConfig, RowsOfARank) {
  const struct {
    int64_t images;
    int ranks, rank;
    int64_t unit, first, rows;
  } cases[] = {{12, 3, 1, 1, 4, 4}, {10, 3, 0, 1, 0, 3}, {10, 3, 2, 1, 6, 4}, {20, 2, 1, 4, 8, 12}};
  for (const auto& c : cases) {
    const BatchShare share = share_of(c.images, Mesh{{c.ranks, 1, 1, 1}, c.rank}, c.unit, "a batch");
    EXPECT_EQ((std::vector<int64_t>{share.first, share.rows, share.global}),
              (std::vector<int64_t>{c.first, c.rows, c.images}));
  }
  const Error error = error_of([] { share_of(32, Mesh{{4, 1, 1, 1}, 0}, 16, "a micro-batch"); });
  EXPECT_EQ(
      error.message(),
      "a micro-batch of 32 images, in groups of 16 that are mixed together, leaves nothing for rank 0 of "
      "mesh.dp 4");
  EXPECT_EQ(error.hint(), "a batch of at least 64, or a smaller mesh.dp");
}

TEST(WorldText, SaysWhoIsWhere) {
  World world;
  world.size = 4, world.local_size = 4, world.transport = "threads";
  EXPECT_EQ(world_text(world, {.dp = 2, .tp = 2}), "4 ranks (threads): dp=2 tp=2, all on this host");
  world.local_size = 3, world.transport = "mpi";
  EXPECT_EQ(world_text(world, {.dp = 4}), "4 ranks (mpi): dp=4, 3 on this host");
  EXPECT_EQ(coordinates_of({{2, 3, 1, 1}, 4}), "dp=1 tp=1");
  EXPECT_EQ(coordinates_of({{1, 1, 1, 1}, 0}), "");
}

TEST(WorldText, ASeatTravelsWhole) {
  const RankSeat seat{3, "host", "a device", 7, "dp=1 tp=1", {0, 1, 2, 3, 8}, false};
  const RankSeat read = RankSeat::from(seat.text());
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.host, "host");
  EXPECT_EQ(read.device, "a device");
  EXPECT_EQ(read.threads, 7);
  EXPECT_EQ(read.mesh, "dp=1 tp=1");
  EXPECT_EQ(read.cores, seat.cores);
  EXPECT_FALSE(read.computes_there);
  const std::string table = seat_table({seat});
  EXPECT_NE(table.find("3  host  a device        7  0-3,8  dp=1 tp=1"), std::string::npos) << table;
  EXPECT_FALSE(table.ends_with('\n'));
}

TEST(OpenWorld, IsAloneOrOfThreads) {
  const World one = open_world({.ranks = 1, .variables = {}}),
              three = open_world({.ranks = 3, .variables = {}});
  EXPECT_EQ(one.ranks.size(), 1u);
  EXPECT_EQ(std::string(one.transport), "self");
  EXPECT_EQ(one.size, 1);
  EXPECT_EQ(three.ranks.size(), 3u);
  EXPECT_EQ(std::string(three.transport), "threads");
  EXPECT_EQ(three.size, 3);
  EXPECT_EQ(three.local_size, 3);
  EXPECT_EQ(three.overlapping, 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(three.ranks[static_cast<size_t>(rank)]->rank(), rank);
}

}  // namespace
}  // namespace vitrail
