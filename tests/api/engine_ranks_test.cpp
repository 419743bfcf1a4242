// One model on the ranks of a mesh: the logits of one rank, and no more memory a rank than its part needs.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "api/predictor.h"
#include "api/row_exchange.h"
#include "backend/cpu/kernels.h"
#include "golden_cases.h"
#include "train/world.h"

namespace vitrail {
namespace {

VitConfig model_of_ranks() {
  VitConfig c;
  c.image_height = 32;
  c.image_width = 48;
  c.patch = 8;
  c.width = 48;
  c.depth = 2;
  c.heads = 12;
  c.mlp = 98;
  c.classes = 7;
  return c;
}

struct Case {
  const char* name;
  MeshConfig mesh;
  void (*change)(VitConfig&) = [](VitConfig&) {};
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

constexpr int64_t kSharedImages = 5;  // so that 2 ranks do not get as many

struct Outcome {
  std::vector<float> logits;
  std::vector<size_t> parameters, planned, allocated;  // by rank
};

Outcome run_on(const MeshConfig& wanted, const VitConfig& config, const EngineOptions& options) {
  const int world = static_cast<int>(std::max<int64_t>(wanted.dp, 1) * wanted.tp * wanted.sp);
  const MeshConfig mesh = resolved(wanted, world);
  const std::vector<float> images = golden::images(config, kSharedImages);
  Outcome outcome;
  outcome.parameters.resize(static_cast<size_t>(world));
  outcome.planned = outcome.allocated = outcome.parameters;
  run_ranks(
      {.worlds = thread_communicators(world), .mesh = mesh, .device = [](int) { return cpu_device(1); }},
      [&](RankContext& rank) {
        EngineOptions own = options;
        own.batch = kSharedImages;
        own.rank = &rank;
        own.distribution = {.mesh = mesh_of(mesh, rank.ranks->mesh().rank),
                            .tokens_on_tp = mesh.tokens_on_tp};
        Engine engine(config, own);
        const Dim mine = engine.executor().input("images").shape()[0];
        const size_t elems = engine.image_elems();
        engine.run(std::span(images).subspan(static_cast<size_t>(mine.offset) * elems,
                                             static_cast<size_t>(mine.local) * elems),
                   mine.local);
        BatchRows rows;
        const std::vector<float> logits = engine.output("logits");
        const size_t width = logits.size() / static_cast<size_t>(mine.local);
        for (int64_t i = 0; i < mine.local; ++i)
          rows.rows.push_back({static_cast<size_t>(mine.offset + i),
                               std::span(logits).subspan(static_cast<size_t>(i) * width, width),
                               {}});
        RowExchange exchange(rank.ranks);
        const BatchRows all = exchange.all(rows);
        const auto r = static_cast<size_t>(rank.ranks->mesh().rank);
        outcome.parameters[r] = rank.allocated(Category::kParameters);
        outcome.planned[r] = engine.plan().memory.peak_bytes();
        for (size_t c = 0; c < kCategoryCount; ++c)
          outcome.allocated[r] += rank.allocated(static_cast<Category>(c));
        if (r != 0) return;
        for (const ImageRow& row : all.rows)
          outcome.logits.insert(outcome.logits.end(), row.values.begin(), row.values.end());
      });
  return outcome;
}

Engine alone(const VitConfig& config, EngineOptions options) {
  options.batch = kSharedImages;
  Engine engine(config, options);
  engine.run(golden::images(config, kSharedImages), kSharedImages);
  return engine;
}

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  return most;
}

class EngineRanks : public testing::TestWithParam<Case> {};

TEST_P(EngineRanks, LogitsOfOneRank) {
  VitConfig config = model_of_ranks();
  GetParam().change(config);
  for (const bool fuse : {true, false}) {
    const EngineOptions options{.threads = 1, .fuse = fuse};
    const Outcome many = run_on(GetParam().mesh, config, options);
    EXPECT_LT(apart(many.logits, alone(config, options).output("logits")), 1e-5);
    EXPECT_EQ(many.planned, many.allocated);
  }
}

// Weights and activations of the blocks' GEMMs are rounded; another order of sums may round some to a
// neighbour.
TEST_P(EngineRanks, RoundedGemmsStayAsNearAsTheyAreToF32) {
  VitConfig config = model_of_ranks();
  GetParam().change(config);
  const std::vector<float> exact = alone(config, {.threads = 1}).output("logits");
  for (const Arithmetic arithmetic : {Arithmetic::kBF16, Arithmetic::kInt8}) {
    const EngineOptions options{.threads = 1, .arithmetic = arithmetic};
    const std::vector<float> one = alone(config, options).output("logits");
    EXPECT_LE(apart(run_on(GetParam().mesh, config, options).logits, exact), 2 * apart(one, exact));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, EngineRanks,
    testing::Values(
        Case{"dp2", {.dp = 2}}, Case{"dp3", {.dp = 3}}, Case{"dp5", {.dp = 5}}, Case{"tp2", {.tp = 2}},
        Case{"tp4", {.tp = 4}}, Case{"tp2_tokens", {.tp = 2, .tokens_on_tp = true}}, Case{"sp2", {.sp = 2}},
        Case{"dp2_tp2", {.dp = 2, .tp = 2}}, Case{"dp2_tp2_sp3", {.dp = 2, .tp = 2, .sp = 3}},
        Case{"tp2_all_parts", {.tp = 2}, [](VitConfig& c) { c.qk_norm = c.layer_scale = true; }},
        Case{"tp3_mean_pool",
             {.tp = 3},
             [](VitConfig& c) {
               c.pool = Pool::kMean, c.norm_place = NormPlace::kAfterPool, c.class_token = false;
             }},
        Case{"sp2_registers", {.sp = 2}, [](VitConfig& c) { c.registers = 2, c.pos_for_prefix = false; }}),
    [](const auto& test) { return test.param.name; });

TEST(EngineRanksMemory, APartOfTheModelIsAPartOfItsParameters) {
  VitConfig config = model_of_ranks();
  config.width = 96, config.mlp = 512;  // so that what vectors of any processor pad is little beside it
  const size_t whole = alone(config, {.threads = 1}).plan().memory.persistent_bytes;
  const Outcome tp = run_on({.tp = 4}, config, {.threads = 1}),
                dp = run_on({.dp = 2}, config, {.threads = 1});
  for (const size_t bytes : tp.parameters) EXPECT_LT(bytes, whole / 2);
  for (const size_t bytes : dp.parameters) EXPECT_EQ(bytes, whole);
}

TEST(EngineRanksRefusals, HeadsThatDoNotDivideAreToldWithWhatWould) {
  try {
    plan_inference(model_of_ranks(), {.threads = 1, .distribution = {.mesh = {{1, 5, 1}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 64);
    EXPECT_NE(error.message().find("12 heads"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("1, 2, 3, 4, 6, 12"), std::string::npos) << error.hint();
  }
}

// Two ranks of each of the three groups have the same images.
TEST(StreamOfRanks, OneRankDecodesWithTheThreadsOfAllThatHaveItsImages) {
  const MeshConfig mesh = resolved({.dp = 3, .tp = 2}, 6);
  ModelCard card;
  card.config = model_of_ranks();
  std::mutex mutex;
  int64_t receivers = 0;
  run_ranks({.worlds = thread_communicators(6), .mesh = mesh, .device = [](int) { return cpu_device(1); }},
            [&](RankContext& rank) {
              EngineOptions options{.threads = 3, .batch = 6};
              options.rank = &rank;
              options.distribution = {.mesh = rank.ranks->mesh()};
              const StreamSettings settings = stream_settings(card, options, false);
              const std::lock_guard lock(mutex);
              EXPECT_EQ(settings.threads, 6);
              receivers += settings.receives;
            });
  EXPECT_EQ(receivers, 3);
}

// Rank 1 has no image, rank 2 one that failed.
TEST(RowExchange, RowsErrorsAndNotesComeInTheOrderOfTheList) {
  const MeshConfig mesh = resolved({.dp = 3, .tp = 2}, 6);
  run_ranks({.worlds = thread_communicators(6), .mesh = mesh, .device = [](int) { return cpu_device(1); }},
            [](RankContext& rank) {
              const float values[] = {1, 2, 3, 4};
              BatchRows mine;
              const int place = rank.ranks->mesh().coordinate(Axis::kData);
              if (place == 0)
                mine.rows = {{7, std::span(values).first(2), {}}, {8, std::span(values).last(2), {}}};
              if (place == 2) {
                mine.rows = {{9, {}, Error(ErrorKind::kData, "cut off", "another").at("b.png").at("list")}};
                mine.notes = {"a note"};
              }
              RowExchange exchange(rank.ranks);
              const BatchRows all = exchange.all(mine);
              ASSERT_EQ(all.rows.size(), 3u);
              for (size_t i = 0; i < 3; ++i) EXPECT_EQ(all.rows[i].index, 7 + i);
              EXPECT_EQ(all.rows[1].values[1], 4);
              ASSERT_TRUE(all.rows[2].error);
              EXPECT_STREQ(all.rows[2].error->what(), "list: b.png: cut off\n  try: another");
              EXPECT_EQ(all.notes, std::vector<std::string>{"a note"});
            });
}

}  // namespace
}  // namespace vitrail
