// A whole model whose GEMMs run on the kernel for compute capability 9.0, against the same images one at a
// time, whose GEMMs are too small for it.
#include <cmath>

#include "api/engine.h"
#include "cuda_test.h"
#include "golden_cases.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

constexpr int64_t kImages = 16;

const VitConfig& tiny() {
  return find_architecture("vit_tiny_patch16_224").config;
}

EngineOptions many(std::shared_ptr<const KernelTable> table) {
  return {.backend = "cuda", .batch = kImages, .compute = DType::kBF16, .kernels = std::move(table)};
}

// Plans for a GPU that need not be present.
ExecutionPlan planned(const EngineOptions& options) {
  DeviceInfo device = planned_cuda_device("H200", 90, 132);
  device.kernels = options.kernels;
  return plan_inference(tiny(), options, device);
}

// A table that assigns the kernel every GEMM it accepts.
std::shared_ptr<const KernelTable> table_for_all() {
  const ExecutionPlan plan = planned(many(nullptr));
  auto table = std::make_shared<KernelTable>();
  for (const Node& node : plan.program.nodes) {
    const std::vector<TensorDesc> ins = plan.program.descs(node.ins), outs = plan.program.descs(node.outs);
    if (const auto key = plan.backend->tune_key({*node.op, ins, outs}, plan.device))
      table->set({*key, {"hopper"}});
  }
  return table;
}

int64_t hopper_nodes(const ExecutionPlan& plan) {
  int64_t count = 0;
  for (const NodeChoice& choice : plan.choices)
    for (const Launch& launch : choice.launches) count += std::string_view(launch.kernel->name) == "hopper";
  return count;
}

TEST(CudaHopperEngine, TakesTheFirstGemmOfEachMlpOrAllOfABlock) {
  // In the last block the class token is alone: too few rows for the kernel to be the default.
  EXPECT_EQ(hopper_nodes(planned(many(nullptr))), tiny().depth - 1);
  EXPECT_GE(hopper_nodes(planned(many(table_for_all()))), 4 * tiny().depth);
  EngineOptions one = many(nullptr);
  one.batch = 1;
  EXPECT_EQ(hopper_nodes(planned(one)), 0);
}

std::vector<float> one_at_a_time(const std::vector<float>& images) {
  EngineOptions options = many(nullptr);
  options.batch = 1;
  Engine engine(tiny(), options);
  std::vector<float> logits;
  for (int64_t i = 0; i < kImages; ++i) {
    const auto elems = static_cast<std::ptrdiff_t>(engine.image_elems());
    const std::vector<float> image(images.begin() + i * elems, images.begin() + (i + 1) * elems);
    engine.run(image, 1);
    const std::vector<float> found = engine.output("logits");
    logits.insert(logits.end(), found.begin(), found.end());
  }
  return logits;
}

// Returns the root mean square of the difference relative to that of the expected values.
double share_off(const std::vector<float>& found, const std::vector<float>& wanted, int64_t image) {
  double off = 0, all = 0;
  const auto classes = static_cast<size_t>(tiny().classes), first = static_cast<size_t>(image) * classes;
  for (size_t i = first; i < first + classes; ++i)
    off += std::pow(found[i] - wanted[i], 2), all += std::pow(wanted[i], 2);
  return std::sqrt(off / all);
}

TEST(CudaHopperEngine, ImagesTogetherGiveWhatEachGivesAloneAndReplayed) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const std::vector<float> images = golden::images(tiny(), kImages), wanted = one_at_a_time(images);
  for (const auto& table : {std::shared_ptr<const KernelTable>(), table_for_all()}) {
    Engine engine(tiny(), many(table));
    ASSERT_GE(hopper_nodes(engine.plan()), table ? 4 * tiny().depth : tiny().depth - 1);
    engine.run(images, kImages);
    const std::vector<float> found = engine.output("logits");
    ASSERT_EQ(found.size(), wanted.size());
    for (int64_t i = 0; i < kImages; ++i) EXPECT_LT(share_off(found, wanted, i), 0.03) << "image " << i;
    for (int run = 0; run < 3; ++run) engine.run(images, kImages);
    EXPECT_EQ(engine.output("logits"), found) << "replayed";
  }
}

}  // namespace
}  // namespace vitrail
