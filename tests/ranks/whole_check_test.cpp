// --check whole: a sharded step agrees with the whole one node by node, on every kind of mesh, and a fault of
// one rank is found at the node where it happens.
#include <gtest/gtest.h>

#include "ranks/shared_run.h"
#include "train/flip_bit.h"
#include "train/run_setup.h"
#include "train/whole_check.h"

namespace vitrail::testing {
namespace {

struct Mixed {
  const char* name;
  int64_t tp, sp, zero;
  bool tokens_on_tp;
  int ranks;
};
const Mixed kMixedMeshes[] = {{"dp2", 1, 1, 0, false, 2},      {"tp2", 2, 1, 0, false, 2},
                              {"tp2tokens", 2, 1, 0, true, 2}, {"sp2", 1, 2, 0, false, 2},
                              {"dp2tp2", 2, 1, 0, false, 4},   {"dp2zero2", 1, 1, 2, false, 2},
                              {"dp3", 1, 1, 1, false, 3},      {"dp2tp2zero3", 2, 1, 3, false, 4}};

TrainConfig mesh_config(const Mixed& mesh) {
  TrainConfig config = shared_config(1);
  config.mesh.tp = mesh.tp, config.mesh.sp = mesh.sp, config.mesh.zero = mesh.zero;
  config.mesh.tokens_on_tp = mesh.tokens_on_tp;
  return config;
}

// A micro-batch of numbers, this rank's rows of it.
struct Rows {
  std::vector<float> images, targets, weights;
  explicit Rows(TrainStep& step) {
    const Shape shape = step.micro().input("images").shape();
    const int64_t each = shape.elems() / shape[0].local,
                  classes = step.micro().input("targets").shape()[1].local;
    for (int64_t row = 0; row < shape[0].local; ++row) {
      const auto at = static_cast<uint64_t>(shape[0].offset + row);
      for (int64_t i = 0; i < each; ++i) images.push_back(counter_uniform(at, static_cast<uint64_t>(i)));
      for (int64_t k = 0; k < classes; ++k)
        targets.push_back(k == static_cast<int64_t>(at) % classes ? 1.0f : 0.0f);
      weights.push_back(1.0f / 24);
    }
  }
  MicroBatch batch() const {
    return {.images = images, .targets = targets, .weights = weights, .teacher = {}, .seed = 3, .step = 0};
  }
};

// Checks a step of a mesh; `prepare` may change a rank's weights, `disturb` what its nodes write.
size_t checked(const TrainConfig& config, int ranks, const std::function<void(TrainStep&)>& prepare = {},
               const std::function<void(int rank, const std::string&, const TensorView&)>& disturb = {}) {
  size_t nodes = 0;
  run_ranks({.worlds = thread_communicators(ranks),
             .mesh = resolved(config.mesh, ranks),
             .device = [](int) { return cpu_device(1); },
             .sharing = ranks},
            [&](RankContext& rank) {
              const int number = rank.ranks->mesh().rank;
              const RunSetup setup = set_up(config, rank.device, {number, ranks, ranks});
              const StepPlan plan = plan_step(setup.step, cpu_backend(), rank.device);
              TrainStep step(plan, rank);
              step.start(setup.model->filler());
              if (prepare) prepare(step);
              const Rows rows(step);
              WholeCheck check(step, [&](const std::string& node, const TensorView& out) {
                if (disturb) disturb(number, node, out);
              });
              const size_t compared = check.run(rows.batch());
              if (number == 0) nodes = compared;
            });
  return nodes;
}

std::string check_error(const TrainConfig& config, int ranks, const std::function<void(TrainStep&)>& prepare,
                        const std::function<void(int, const std::string&, const TensorView&)>& disturb = {}) {
  try {
    checked(config, ranks, prepare, disturb);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheck) << error.what();
    return error.what();
  }
  return "";
}

TEST(WholeCheck, EveryNodeOfAMeshAgrees) {
  for (const Mixed& mesh : kMixedMeshes) {
    SCOPED_TRACE(mesh.name);
    EXPECT_GT(checked(mesh_config(mesh), mesh.ranks), 80u);
  }
}

TEST(WholeCheck, LowPrecisionToo) {
  TrainConfig config = mesh_config(kMixedMeshes[4]);
  config.train.dtype = ComputeType::kBF16;
  EXPECT_GT(checked(config, 4), 80u);
}

// One number of one rank's result is off: the error names the node, the rank and the element.
TEST(WholeCheck, AFaultOfOneRanksKernelIsFoundAtItsNode) {
  const struct {
    const Mixed& mesh;
    const char *node, *says;
  } faults[] = {
      {kMixedMeshes[0], "blocks.1.norm2", "rank 1"},        {kMixedMeshes[1], "blocks.0.attn.qkv", "rank 1"},
      {kMixedMeshes[1], "blocks.1.norm2", "rank 1"},        // whole on either rank
      {kMixedMeshes[1], "blocks.1.mlp.fc2", "ranks 0, 1"},  // a sum of both
      {kMixedMeshes[3], "blocks.1.attn.softmax", "rank 1"}, {kMixedMeshes[4], "blocks.0.mlp.gelu", "rank 1"}};
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.node);
    const std::string text = check_error(mesh_config(fault.mesh), fault.mesh.ranks, {},
                                         [&](int rank, const std::string& node, const TensorView& out) {
                                           if (rank == 1 && node == fault.node) out.as<float>()[7] += 0.5f;
                                         });
    EXPECT_NE(text.find(std::string(fault.node) + ": element "), std::string::npos) << text;
    EXPECT_NE(text.find(std::string("which ") + fault.says + " computed"), std::string::npos) << text;
  }
}

TEST(WholeCheck, AValueThatChangesOnItsWayIsFound) {
  const std::string text = check_error(mesh_config(kMixedMeshes[1]), 2, {},
                                       [](int rank, const std::string& node, const TensorView& out) {
                                         if (rank == 1 && node == "blocks.0.attn.proj.all_reduce")
                                           out.as<float>()[3] += 0.25f;
                                       });
  EXPECT_NE(
      text.find("blocks.0.attn.proj.all_reduce: moving a value between ranks changed element 3 on rank 1"),
      std::string::npos)
      << text;
}

TEST(WholeCheck, AWeightThatDiffersIsFoundWhereItIsRead) {
  const std::string text = check_error(mesh_config(kMixedMeshes[1]), 2, [](TrainStep& step) {
    if (step.rank().ranks->mesh().rank == 1) flip_bit(step, {"blocks.1.norm1.weight", 32 * 5 + 20});
  });
  EXPECT_NE(text.find("blocks.1.norm1: blocks.1.norm1.weight is not the same on all ranks: element 5"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("on rank 1"), std::string::npos) << text;
}

// ZeRO 3: a rank holds pieces of the parameters, frozen ones too, in either precision.
TEST(WholeCheck, PiecesOfParametersArePutTogether) {
  for (const int ranks : {2, 3})
    for (const ComputeType type : {ComputeType::kF32, ComputeType::kBF16}) {
      TrainConfig config = shared_config(1);
      config.mesh.zero = 3;
      config.train.dtype = type;
      config.params.freeze = {"blocks.0.*"};
      EXPECT_GT(checked(config, ranks), 60u);
      const std::string text =
          check_error(config, ranks, {}, [&](int rank, const std::string& node, const TensorView& out) {
            if (rank == 1 && node == "blocks.1.norm2" && type == ComputeType::kF32)
              out.as<float>()[7] += 0.5f;
          });
      EXPECT_EQ(text.find("blocks.1.norm2: element ") != std::string::npos, type == ComputeType::kF32)
          << text;
    }
}

}  // namespace
}  // namespace vitrail::testing
