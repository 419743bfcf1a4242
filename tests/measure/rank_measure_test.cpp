// Updates and inferences of two rank threads, measured: what is told of them adds up, and the ranks compute
// what one rank does. Nothing here depends on how long anything takes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "api/settings.h"
#include "backend/registry.h"
#include "backend/wrapped_device.h"
#include "measure/compare_models.h"
#include "measure/profile_run.h"
#include "measure/rank_infer.h"
#include "measure/rank_steps.h"
#include "measure/stream_bench.h"
#include "measure/synthetic_steps.h"
#include "plan/devices.h"
#include "source_root.h"
#include "thrown.h"

namespace vitrail {
namespace {

TrainConfig rank_config(const char* mesh, int micro_batch = 2) {
  return training_config(
      std::string(
          R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 4, "heads": 2,
                       "mlp": 64}, "data": {"train": "synthetic:3x16x16x4x64"}, "mesh": )") +
      mesh +
      strf(R"(, "train": {"batch": 8, "micro_batch": %d, "steps": 8}, "optim": {"lr": 0.05}})", micro_batch));
}

RankStepsRequest rank_request(const char* mesh) {
  RankStepsRequest request;
  request.config = rank_config(mesh);
  request.backend = "cpu";
  request.device = [](int) { return device_here("cpu", 1, ""); };
  request.warmup = 1, request.updates = 4;
  return request;
}

World two_threads() {
  return open_world({.ranks = 2, .variables = [](const char*) { return static_cast<const char*>(nullptr); }});
}

double sum_over(const TimingStatus& timing, double RankTime::*part) {
  double sum = 0;
  for (const RankTime& rank : timing.ranks) sum += rank.*part;
  return sum;
}

TEST(RankSteps, AddUp) {
  const RankStepsResult r = time_rank_steps(two_threads(), rank_request(R"({"dp": 2})"));
  EXPECT_EQ(r.ranks, 2);
  EXPECT_EQ(r.transport, "threads");
  EXPECT_EQ(r.mesh, "dp=2");
  EXPECT_EQ(r.devices, "") << "they share the host's memory";
  EXPECT_EQ(r.batch, 8);
  EXPECT_EQ(r.seconds.count, 4u);
  EXPECT_EQ(r.steps, 5);
  EXPECT_EQ(r.timing.updates, 4);
  ASSERT_EQ(r.timing.ranks.size(), 2u);
  EXPECT_EQ(spread_of(r.each).median, r.seconds.median);
  ASSERT_EQ(r.computes.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(r.computes[rank].size(), 4u);
    EXPECT_NEAR(std::accumulate(r.computes[rank].begin(), r.computes[rank].end(), 0.0),
                r.timing.ranks[rank].compute_s, 1e-12);
  }
  // What the plan says a rank sends, it sends in every update.
  const RunPlan plan(rank_config(R"({"dp": 2})"), std::nullopt, find_backend("cpu"),
                     device_here("cpu", 1, ""), RankPlace{0, 2, 2});
  double planned = 0;
  for (const CollectiveRow& row : plan.collectives()) planned += row.bytes;
  EXPECT_DOUBLE_EQ(r.sent_bytes, planned);
  EXPECT_EQ(r.peak_bytes, plan.step().peak_bytes());
  double total = 0;
  for (const RankTime& rank : r.timing.ranks) total += rank.total_s();
  EXPECT_NEAR(r.exposed_share, sum_over(r.timing, &RankTime::exposed_s) / total, 0.1);
  EXPECT_NEAR(r.waited_share, sum_over(r.timing, &RankTime::imbalance_s) / total, 0.1);
  EXPECT_LE(r.waited_share, r.exposed_share + 1e-9);
  EXPECT_GT(r.flight_s, 0);
  EXPECT_LT(r.flight_s, 2 * r.timing.update_s()) << "of one update, of one rank";
  EXPECT_GE(r.hidden_share, 0);
  EXPECT_LE(r.hidden_share, 1);
}

// One rank exchanges nothing: no share of nothing is hidden.
TEST(RankSteps, OfOneRankHaveNothingToHide) {
  const RankStepsResult r = time_rank_steps(
      open_world({.ranks = 1, .variables = [](const char*) { return static_cast<const char*>(nullptr); }}),
      rank_request("{}"));
  EXPECT_EQ(r.ranks, 1);
  EXPECT_EQ(r.seconds.count, 4u);
  EXPECT_EQ(r.flight_s, 0);
  EXPECT_EQ(r.hidden_share, 0);
  EXPECT_EQ(r.exposed_share, 0);
  EXPECT_EQ(r.waited_share, 0);
  EXPECT_EQ(r.sent_bytes, 0);
}

// The same images, whoever has them, make the same updates: two ranks with two each are one with four.
TEST(RankSteps, LearnWhatOneRankLearns) {
  const auto alone = [](int micro_batch) {
    RankContext rank(device_here("cpu", 1, ""));
    const RunPlan plan(rank_config("{}", micro_batch), std::nullopt, find_backend("cpu"), rank.device);
    SyntheticSteps steps(plan, rank);
    for (int i = 0; i < 5; ++i) steps.run();
    return steps.loss_share();
  };
  const std::pair<const char*, int> meshes[] = {
      {R"({"dp": 2})", 4}, {R"({"tp": 2})", 2}, {R"({"sp": 2})", 2}, {R"({"pp": 2})", 2}};
  for (const auto& [mesh, together] : meshes)
    EXPECT_NEAR(time_rank_steps(two_threads(), rank_request(mesh)).loss, alone(together), 1e-4) << mesh;
}

TEST(RankSteps, AStopEndsThem) {
  RankStepsRequest request = rank_request(R"({"dp": 2})");
  int asked = 0;
  request.stop = [&] { return ++asked == 3; };
  const std::string said = thrown_by([&] { time_rank_steps(two_threads(), request); });
  EXPECT_NE(said.find("stopped during a benchmark"), std::string::npos) << said;
  EXPECT_EQ(asked, 3) << "before each update";
}

TEST(RankProfile, HasTheRowsOfEachRank) {
  const auto profile = profile_ranks(two_threads(), rank_request(R"({"dp": 2})"), {.warmup = 1, .runs = 2});
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->training);
  EXPECT_EQ(profile->batch, 8);
  EXPECT_EQ(profile->seconds.count, 2u);
  EXPECT_TRUE(profile->what.ends_with(
      ", an update of 8 images: adamw, f32, recompute none, micro-batches of 2, dp=2"))
      << profile->what;
  ASSERT_EQ(profile->ranks.size(), 2u);
  ASSERT_EQ(profile->ranks[0].size(), profile->parts.size());
  for (size_t i = 0; i < profile->parts.size(); ++i) {
    const ProfileRow &own = profile->parts[i], &told = profile->ranks[0][i], &other = profile->ranks[1][i];
    EXPECT_EQ(told.name, own.name);
    EXPECT_EQ(told.phase, own.phase) << own.name;
    EXPECT_EQ(told.nodes, own.nodes) << own.name;
    EXPECT_NEAR(told.seconds, own.seconds, 1e-9) << own.name;
    EXPECT_DOUBLE_EQ(told.flops, own.flops) << own.name;
    EXPECT_DOUBLE_EQ(told.bytes, own.bytes) << own.name;
    EXPECT_DOUBLE_EQ(other.flops, own.flops) << own.name;
  }
  const RankTimes times = rank_times_of(*profile);
  for (const char* name : {"forward", "backward", "update", "communication"})
    EXPECT_NE(std::find(times.columns.begin(), times.columns.end(), name), times.columns.end()) << name;
}

// Calls `body` on two ranks, with the team of each.
void on_two_ranks(const std::function<void(const Team&)>& body) {
  MeshConfig mesh;
  mesh.dp = 2;
  run_ranks({.worlds = two_threads().ranks,
             .mesh = resolved(mesh, 2),
             .device = [](int) { return device_here("cpu", 1, ""); },
             .sharing = 2},
            [&](RankContext& rank) { body(Team(rank.ranks)); });
}

// Ranks run equally often: as often as was said, or as the first one's time for a run suggests.
TEST(RankProfile, RanksAgreeHowOftenTheyRun) {
  const auto agreed = [](const TimingBudget& budget, const Team& team) {
    int runs = 0;
    const TimingBudget found = agreed_budget(budget, team, [&] { ++runs; });
    return std::pair(found, runs);
  };
  const auto [alone, none] = agreed({.warmup = 2, .seconds = 5}, Team(nullptr));
  EXPECT_EQ(alone.seconds, 5) << "one rank goes by its own time";
  EXPECT_EQ(alone.runs, 0);
  EXPECT_EQ(none, 0);
  on_two_ranks([&](const Team& team) {
    const auto [said, unasked] = agreed({.warmup = 2, .seconds = 5, .runs = 1}, team);
    EXPECT_EQ(said.runs, 1);
    EXPECT_EQ(said.seconds, 5);
    EXPECT_EQ(unasked, 0) << "nothing is to be found out";
    const auto [least, tried] = agreed({.warmup = 2, .seconds = 1e-12}, team);
    EXPECT_EQ(least.runs, 3);
    EXPECT_EQ(least.seconds, 0);
    EXPECT_EQ(least.warmup, 2);
    EXPECT_EQ(tried, 2) << "once to warm up, once by the clock";
    // The first rank has a year, the other nothing.
    const auto [most, again] = agreed({.warmup = 2, .seconds = team.leads() ? 3e7 : 0}, team);
    EXPECT_EQ(most.runs, 1000);
    EXPECT_EQ(again, 2);
  });
}

VitConfig inferred_model() {
  VitConfig config;
  config.image_height = config.image_width = 16, config.patch = 8;
  config.width = 32, config.heads = 2, config.mlp = 64, config.depth = 2, config.classes = 5;
  return config;
}

// Counts the runs of a program: each sets the time before its first node, the first time that is made.
class RunCounter : public WrappedDevice {
 public:
  explicit RunCounter(int& runs) : runs_(runs) {}
  std::unique_ptr<Timestamp> create_timestamp() override {
    std::unique_ptr<Timestamp> made = WrappedDevice::create_timestamp();
    if (!first_) first_ = made.get();
    return made;
  }
  void stamp(Timestamp& time) override {
    runs_ += &time == first_ ? 1 : 0;
    WrappedDevice::stamp(time);
  }

 private:
  int& runs_;
  const Timestamp* first_ = nullptr;
};

// Calls `body` on two ranks of a mesh, with what asks for three runs of them beside one alone; true for the
// first.
void ask_two_ranks(const MeshConfig& mesh, int64_t shared_batch, RankContext& lone,
                   const std::function<void(RankInferRequest&, bool)>& body) {
  World world = two_threads();
  run_ranks({.worlds = std::move(world.ranks),
             .mesh = resolved(mesh, 2),
             .device = [](int) { return device_here("cpu", 1, ""); },
             .sharing = 2},
            [&](RankContext& rank) {
              RankInferRequest request{
                  .make = [](const EngineOptions& options) { return Engine(inferred_model(), options); },
                  .shared = {.threads = 1, .batch = shared_batch},
                  .alone = {.threads = 1, .batch = 2},
                  .budget = {.warmup = 1, .runs = 3}};
              request.shared.rank = &rank;
              request.shared.distribution = {.mesh = rank.ranks->mesh()};
              request.alone.rank = &lone;
              body(request, rank.ranks->mesh().rank == 0);
            });
}

// Returns what the first rank found.
RankInferResult time_two_ranks(const MeshConfig& mesh, int64_t shared_batch, RankContext& lone,
                               const std::function<void()>& measured = {}) {
  RankInferResult result;
  ask_two_ranks(mesh, shared_batch, lone, [&](RankInferRequest& request, bool first) {
    if (first) request.hooks.measured = measured;
    const RankInferResult own = time_rank_infer(request);
    if (first) result = own;
  });
  return result;
}

TEST(RankInfer, GivesTheLogitsOfOneRank) {
  int lone_runs = 0;
  RankContext lone(device_here("cpu", 1, ""), std::make_unique<RunCounter>(lone_runs));
  MeshConfig mesh;
  mesh.dp = 2;
  int measured = 0;
  const RankInferResult result = time_two_ranks(mesh, 5, lone, [&] { ++measured; });
  EXPECT_EQ(measured, 3);
  EXPECT_EQ(result.shared.batch, 5);
  EXPECT_EQ(result.alone.batch, 2);
  EXPECT_EQ(result.shared.threads, 1);
  EXPECT_EQ(result.shared.seconds.count, 3u) << "without the warm-up";
  EXPECT_EQ(result.alone.seconds.count, 3u);
  EXPECT_EQ(lone_runs, 4 + 3) << "each round, and for the logits of five images two at a time";
  EXPECT_LT(result.difference, 1e-4) << "all five images, two at a time alone";
  EXPECT_GE(result.exposed_share, 0);
  EXPECT_LE(result.exposed_share, 1);
  // Three of five images are the larger part.
  EngineOptions larger{.threads = 1, .batch = 5};
  larger.distribution = {.mesh = mesh_of(resolved(mesh, 2), 0)};
  EngineOptions smaller = larger;
  smaller.distribution = {.mesh = mesh_of(resolved(mesh, 2), 1)};
  const DeviceInfo device = device_here("cpu", 1, "");
  EXPECT_EQ(result.shared.peak_bytes,
            std::max(plan_inference(inferred_model(), larger, device).memory.peak_bytes(),
                     plan_inference(inferred_model(), smaller, device).memory.peak_bytes()));
}

// Threads that exchange every layer's sums of so small a model do little else: more than a thousandth,
// however long it takes.
TEST(RankInfer, TheExposedShareIsOfTheTimeOfTheRuns) {
  MeshConfig mesh;
  mesh.tp = 2;
  RankContext lone(device_here("cpu", 1, ""));
  const double share = time_two_ranks(mesh, 2, lone).exposed_share;
  EXPECT_GT(share, 1e-3);
  EXPECT_LE(share, 1);
}

// The first rank alone is asked; the other ends because that one says so, and not because it is gone.
TEST(RankInfer, AStopEndsBothRanks) {
  MeshConfig mesh;
  mesh.tp = 2;
  RankContext lone(device_here("cpu", 1, ""));
  int asked = 0;
  std::string of_other;
  const auto body = [&](RankInferRequest& request, bool first) {
    if (!first) {
      of_other = thrown_by([&] { time_rank_infer(request); });
      return;
    }
    request.stop = [&] { return ++asked == 3; };
    time_rank_infer(request);
  };
  const std::string said = thrown_by([&] { ask_two_ranks(mesh, 2, lone, body); });
  EXPECT_NE(said.find("stopped during a benchmark"), std::string::npos) << said;
  EXPECT_EQ(of_other, "stopped: stopped during a benchmark");
  EXPECT_EQ(asked, 3) << "before each run";
}

const std::string kGolden = VT_SOURCE_DIR "/tests/golden/";

TEST(StreamBench, FiguresFitEachOther) {
  const auto model = open_model(kGolden + "models/hf_single");
  const std::vector<std::string> paths(3, kGolden + "images/grey.jpg");
  StreamBench bench(*model, {.threads = 1, .batch = 2}, paths, "--threads ");
  for (int i = 0; i < 3; ++i) bench.round();
  const nlohmann::ordered_json json = bench.to_json();
  const auto median = [&](const char* key) { return spread_of(json[key].get<std::vector<double>>()).median; };
  const double decode = median("decode_seconds"), compute = median("compute_seconds"),
               both = median("both_seconds");
  EXPECT_EQ(json["both_seconds"].size(), 3u);
  EXPECT_DOUBLE_EQ(json["img_per_s"].get<double>(), 3 / both);
  EXPECT_DOUBLE_EQ(json["ratio_to_slower"].get<double>(), both / std::max(decode, compute));
  EXPECT_DOUBLE_EQ(json["ratio_to_sum"].get<double>(), both / (decode + compute));
  EXPECT_TRUE(bench.to_text().starts_with("images            3, batch 2, on cpu (")) << bench.to_text();
  EXPECT_NE(bench.to_text().find("; medians of 3\n"), std::string::npos);
}

TEST(CompareModels, LayersComeInTheOrderOfTheirComputation) {
  const std::string path = kGolden + "models/hf_single";
  const ModelTrace trace = trace_model({.path = path, .open = {}, .engine = {.threads = 1}});
  std::vector<std::string> names;
  for (const auto& [name, values] : trace.layers) names.push_back(name);
  ASSERT_GE(names.size(), 4u);
  EXPECT_EQ(names[0], "images");
  EXPECT_EQ(names[1], "embed");
  EXPECT_EQ(names[2], "blocks.0");
  EXPECT_EQ(names.back(), "logits");
  EXPECT_EQ(
      static_cast<int64_t>(std::count_if(
          names.begin(), names.end(), [](const std::string& name) { return name.starts_with("blocks."); })),
      trace.card.config.depth);
  EXPECT_GT(trace.nodes, 0u);
  std::vector<float> zeros(trace.layers[0].second.size());
  const ModelTrace other = trace_model({.path = path, .open = {}, .engine = {.threads = 1}, .input = &zeros});
  EXPECT_EQ(other.layers[0].second, zeros);
  EXPECT_EQ(compare_models(trace, other, 1e-3).first, "images");
  EXPECT_EQ(compare_models(trace, trace, 0).first, "");
}

}  // namespace
}  // namespace vitrail
