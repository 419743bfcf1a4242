// What ranks compare before the first step: ranks that differ end with the key and the rank, on folders that
// were not touched; what may differ is said.
#include <gtest/gtest.h>

#include <mutex>

#include "train/agreement.h"
#include "train/helpers/tiny_run.h"
#include "train/rank_facts.h"

namespace vitrail::testing {
namespace {

// Runs `body` on rank threads and returns the texts of those that failed, by rank.
std::map<int, std::string> failures(int ranks, const std::function<void(Communicator&)>& body) {
  std::mutex mutex;
  std::map<int, std::string> failed;
  run_ranks({.worlds = thread_communicators(ranks),
             .mesh = resolved(MeshConfig(), ranks),
             .device = [](int) { return cpu_device(1); }},
            [&](RankContext& rank) {
              try {
                body(rank.ranks->world());
              } catch (const Error& error) {
                const std::lock_guard lock(mutex);
                EXPECT_EQ(error.kind(), ErrorKind::kConfig);
                failed[rank.ranks->mesh().rank] = error.what();
              }
            });
  return failed;
}

TEST(RankFacts, TheRankThatDiffersNamesItselfAndTheKey) {
  for (const char* key :
       {"the program", "train.steps", "data.train, its names and labels,", "the mesh", "the pins of the mesh",
        "the order of collectives", "the program before it is cut"}) {
    const auto failed = failures(3, [&](Communicator& world) {
      require_same_facts(world, {{key, world.rank() == 2 ? "other" : "usual"}, {"same", 1}});
    });
    ASSERT_EQ(failed.size(), 1u) << key;
    EXPECT_NE(failed.at(2).find(std::string(key) + " is \"other\" on rank 2 and \"usual\" on rank 0"),
              std::string::npos)
        << failed.at(2);
  }
}

// Hosts may keep data and models in other places and have other cores; all else must be the same.
TEST(RankFacts, PlacesAndLoadersMayDiffer) {
  const Json config = {{"data", {{"train", "folder:/a"}, {"val_fraction", 0.1}}},
                       {"loader", {{"workers", 3}, {"on_error", "skip"}}},
                       {"model", {{"init", "/models/x"}}}};
  EXPECT_EQ(config_facts(config), (Json{{"data.val_fraction", 0.1}, {"loader.on_error", "skip"}}));
}

TEST(RankFacts, OnlyRanksOfAGroupAreCompared) {
  const auto failed = failures(4, [&](Communicator& world) {
    const int rank = world.rank();
    require_same_facts(world, {{"table", rank == 3 ? 9 : rank % 2}}, rank % 2 ? "one kind" : "another");
  });
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_NE(failed.at(3).find("table is 9 on rank 3 and 1 on rank 1"), std::string::npos) << failed.at(3);
}

// A run of two ranks in which one may have been given something else.
struct Given {
  std::function<void(TrainConfig&)> config = [](TrainConfig&) {};
  std::function<void(DeviceInfo&)> device = [](DeviceInfo&) {};
  std::function<void(TrainConfig&)> both = [](TrainConfig&) {};
};

Error run_with(const Given& other, std::vector<std::string>& notes) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  config.train.batch = 8;
  other.both(config);
  TrainHooks hooks;
  hooks.note = [&](const std::string& text) { notes.push_back(text); };
  const auto device = [&](int local) {
    DeviceInfo info = cpu_device(1);
    if (local == 1) other.device(info);
    return info;
  };
  try {
    run_ranks(
        {.worlds = thread_communicators(2), .mesh = resolved(config.mesh, 2), .device = device, .sharing = 2},
        [&](RankContext& rank) {
          TrainConfig own = config;
          const bool leads = rank.ranks->mesh().rank == 0;
          if (!leads) other.config(own);
          Trainer(own, {work / "run", ResumeMode::kFresh, "test"}, cpu_backend(), rank,
                  leads ? hooks : TrainHooks{})
              .run();
        });
  } catch (const Error& error) {
    EXPECT_FALSE(std::filesystem::exists(work / "run")) << "nothing was begun";
    return error;
  }
  return Error(ErrorKind::kInternal, "the run did not fail");
}

std::shared_ptr<const KernelTable> a_table() {
  auto table = std::make_shared<KernelTable>();
  table->set({{.op = "linear", .m = 8, .n = 16, .k = 16}, {"plain"}});
  return table;
}

TEST(RankFacts, ARunOfRanksThatDifferDoesNotBegin) {
  struct Row {
    const char* key;
    Given given;
  };
  const WorkFolder models;
  for (const char* name : {"one", "other"}) {
    TrainConfig config = tiny_config(1);
    config.train.seed = name[1] == 'n' ? 1 : 2;
    train(config, models / name);
  }
  const auto begins = [&](TrainConfig& c) { c.model.init = models / "one/best"; };
  const auto learns = [&](TrainConfig& c) { c.distill = {DistillKind::kSoft, models / "one/best", 0.5, 2}; };
  const Row rows[] = {
      {"distill.teacher, its weights,",
       {.config = [&](auto& c) { c.distill.teacher = models / "other/best"; }, .both = learns}},
      {"model.init, its weights,",
       {.config = [&](auto& c) { c.model.init = models / "other/best"; }, .both = begins}},
      {"model.init, its config and preprocessing,",
       {.config =
            [&](auto& c) {
              c.model.preprocess.mean = {0.25};
              c.model.preprocess_given.insert("mean");
            },
        .both = begins}},
      {"data.train", {.config = [](auto& c) { c.data.train = "synthetic:3x8x8x4x44"; }}},
      {"data.val, its names and labels,",
       {.config = [](auto& c) { c.data.val = "synthetic:3x8x8x4x12"; },
        .both = [](auto& c) { c.data.val = "synthetic:3x8x8x4x8"; }}},
      {"the program before it is cut", {.config = [](auto& c) { c.train.dropout = 0.1; }}},
      {"the order of collectives", {.config = [](auto& c) { c.mesh.bucket_mb = 0.001; }}},
      {"the pins of the mesh",
       {.config = [](auto& c) { c.augment.mixup = 0.5, c.augment.mix_group = 4; },
        .both = [](auto& c) { c.augment.mixup = 0.5, c.augment.mix_group = 2; }}},
      {"the kernel table of cpu", {.device = [](auto& info) { info.kernels = a_table(); }}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.key);
    std::vector<std::string> notes;
    const Error error = run_with(row.given, notes);
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
    EXPECT_NE(std::string(error.what()).find(row.key), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("on rank 1 and"), std::string::npos) << error.what();
  }
}

TEST(RankFacts, DevicesOfOtherKindsMayHaveOtherTables) {
  const int other = std::max(cpu_device(1).isa - 1, 0);
  if (other == cpu_device(1).isa) GTEST_SKIP() << "this processor has one instruction set alone";
  std::vector<std::string> notes;
  const Error none =
      run_with({.device = [&](DeviceInfo& info) { info.isa = other, info.kernels = a_table(); }}, notes);
  EXPECT_EQ(none.kind(), ErrorKind::kInternal) << none.what();
  const auto told = std::find_if(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("several kinds of device") != std::string::npos;
  });
  ASSERT_NE(told, notes.end());
  EXPECT_NE(told->find("from rank 1, kernel table"), std::string::npos) << *told;
}

// The facts of a plan are the same on every rank, also where dims and batches are cut unevenly.
TEST(RankFacts, AreTheSameOnEveryRankOfAMesh) {
  struct Row {
    int64_t dp, tp, sp, zero;
    bool tokens;
    int64_t pp = 1;
  };
  for (const Row& row : {Row{3, 1, 1, 0, false},
                         {3, 1, 1, 3, false},
                         {3, 2, 1, 1, true},
                         {2, 1, 2, 2, false},
                         {3, 2, 1, 1, true, 2}}) {
    TrainConfig config = tiny_config(2);
    config.train.batch = 11;
    config.train.eval_batch = 3;
    config.mesh = {
        .dp = row.dp, .tp = row.tp, .sp = row.sp, .pp = row.pp, .tokens_on_tp = row.tokens, .zero = row.zero};
    const int world = static_cast<int>(row.dp * row.tp * row.sp * row.pp);
    std::optional<Json> facts;
    std::map<int, Json> orders;  // by stage
    std::map<std::string, Json> counts;
    for (int r = 0; r < world; ++r) {
      const RunSetup setup = set_up(config, cpu_device(1), {r, world, world});
      const StepPlan plan = plan_step(setup.step, cpu_backend(), cpu_device(1));
      if (!facts) facts = step_facts(plan);
      EXPECT_EQ(*facts, step_facts(plan)) << "rank " << r;
      const int stage = setup.step.distribution.mesh.coordinate(Axis::kPipeline);
      EXPECT_EQ(orders.try_emplace(stage, order_facts(plan)).first->second, order_facts(plan))
          << "rank " << r;
      for (unsigned bits = 1; bits < kAxisSets; ++bits) {
        const AxisSet axes = AxisSet::from_bits(bits);
        const std::string group = to_string(axes) + std::to_string(setup.step.distribution.mesh.group(axes));
        EXPECT_EQ(counts.try_emplace(group, count_facts(plan, axes)).first->second, count_facts(plan, axes))
            << group << " rank " << r;
      }
    }
  }
}

TEST(RankFacts, MistakesInTheMeshCreateNoFolder) {
  const WorkFolder work;
  TrainConfig heads = tiny_config(2), groups = tiny_config(2);
  heads.mesh.tp = 3;                                         // of two heads
  groups.augment.mixup = 0.5, groups.augment.mix_group = 4;  // two groups for three ranks
  for (const TrainConfig& config : {heads, groups}) {
    Ran ran;
    const Error error = train_error(ran, config, work / "run", {.ranks = 3});
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
    EXPECT_FALSE(std::filesystem::exists(work / "run"));
  }
}

TEST(RankTable, HasTheCores) {
  const RankSeat seat{1, "host", "cpu", 2, "dp=1", {0, 1, 2, 3, 8}};
  const RankSeat read = RankSeat::from(seat.text());
  EXPECT_EQ(read.cores, seat.cores);
  EXPECT_EQ(read.mesh, "dp=1");
  const std::string table = seat_table({seat});
  EXPECT_NE(table.find("cores"), std::string::npos) << table;
  EXPECT_NE(table.find("0-3,8"), std::string::npos) << table;
}

}  // namespace
}  // namespace vitrail::testing
