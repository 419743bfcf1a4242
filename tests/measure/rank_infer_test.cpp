// Inferences of two rank threads, measured: they give the logits of one rank, and one stop ends both. Nothing
// here depends on how long anything takes.
#include <gtest/gtest.h>

#include <functional>

#include "backend/wrapped_device.h"
#include "measure/rank_infer.h"
#include "plan/devices.h"
#include "thrown.h"
#include "two_threads.h"

namespace vitrail {
namespace {

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

}  // namespace
}  // namespace vitrail
