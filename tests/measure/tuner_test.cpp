// Which GEMMs are tuned and which kernel is preferred, on the CPU and, from descriptions alone, on a GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/engine.h"
#include "backend/cuda/kernels.h"
#include "measure/tuner_gpu.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

TEST(Tune, CoversTheZoo) {
  const std::vector<GemmSize> sizes = zoo_gemms();
  EXPECT_EQ(sizes.size(), 96u);
  for (const GemmSize& size :
       {GemmSize{197, 2304, 768}, {1576, 1024, 4096}, {50, 192, 192}, {520, 1536, 384}})
    EXPECT_NE(std::find(sizes.begin(), sizes.end(), size), sizes.end()) << size.m << "x" << size.n;
}

TEST(Tune, OnlyAClearlyFasterKernelGoesAhead) {
  const auto names = [](const std::vector<KernelSpeed>& speeds) {
    std::string text;
    for (const KernelSpeed& speed : ranked(speeds)) text += speed.kernel;
    return text;
  };
  EXPECT_EQ(names({{"a", 100, false}, {"b", 102, false}, {"c", 110, false}}), "cab");
  EXPECT_EQ(names({{"a", 50, false}, {"b", 100, false}, {"c", 101, false}}), "bca");
  EXPECT_EQ(names({{"a", 3, false}, {"b", 2, false}, {"c", 1, false}}), "abc");
}

TEST(Tune, ARowKeepsTheFastestAndOneForPlainWeights) {
  DeviceInfo device;
  device.threads = 2;
  const auto kept = [&](const std::vector<KernelSpeed>& speeds) {
    return tuned_row({3, 4, 5}, device, speeds).kernels;
  };
  EXPECT_EQ(kept({{"p", 9, true}, {"a", 8, false}, {"b", 7, false}}), (std::vector<std::string>{"p", "a"}));
  EXPECT_EQ(kept({{"a", 9, false}, {"p", 8, true}}), std::vector<std::string>{"a"});
  EXPECT_EQ(tuned_row({3, 4, 5}, device, {}).key, (TuneKey{"linear", 3, 4, 5, 2, 0}));
}

const DeviceInfo kInfo = planned_cuda_device("NVIDIA H200 (synthetic)", 90);

ExecutionPlan planned(DType dtype, std::shared_ptr<const KernelTable> kernels = nullptr, int64_t batch = 2) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  config.image_height = config.image_width = 32;
  return plan_inference(
      config, {.backend = "cuda", .batch = batch, .compute = dtype, .kernels = std::move(kernels)}, kInfo);
}

size_t listed(const PlannedGemm& gemm, std::string_view start) {
  return static_cast<size_t>(
      std::count_if(gemm.kernels.begin(), gemm.kernels.end(),
                    [&](const Kernel* kernel) { return std::string_view(kernel->name).starts_with(start); }));
}

TEST(TuneGpu, OffersEachGemmOnceWithAllItsKernels) {
  const ExecutionPlan plan = planned(DType::kBF16);
  const std::vector<PlannedGemm> gemms = gemms_to_tune({&plan, &plan});
  ASSERT_GE(gemms.size(), 6u) << "patches, qkv, proj, fc1, fc2, head";
  for (size_t i = 0; i < gemms.size(); ++i) {
    const PlannedGemm& gemm = gemms[i];
    EXPECT_EQ(listed(gemm, "cublaslt"), 16u) << gemm.key.op;
    const bool linear = gemm.key.op.starts_with("linear");
    EXPECT_EQ(listed(gemm, "hopper"), linear ? 2u : 0u) << gemm.key.op;
    EXPECT_EQ(listed(gemm, "tiled"), 0u) << gemm.key.op;
    EXPECT_STREQ(gemm.kernels.front()->name, linear ? "hopper_small" : "cublaslt") << "few rows";
    EXPECT_EQ(gemm.key.level, 90);
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(gemms[j].key == gemm.key) << gemm.key.op;
  }
  const auto qkv =
      std::find_if(gemms.begin(), gemms.end(), [](const PlannedGemm& p) { return p.key.n == 3 * 192; });
  ASSERT_NE(qkv, gemms.end());
  EXPECT_EQ(qkv->key, (TuneKey{"linear+bias bf16", 10, 576, 192, 0, 90}));
  EXPECT_EQ(qkv->nodes, 2 * 12);
}

TEST(TuneGpu, OffersWhatRunsWithoutATableFirst) {
  const ExecutionPlan plan = planned(DType::kBF16, nullptr, 1024);
  const std::vector<PlannedGemm> gemms = gemms_to_tune({&plan});
  size_t own = 0;
  for (const PlannedGemm& gemm : gemms) {
    const bool gelu = gemm.key.op == "linear+bias+gelu bf16" && gemm.key.m > 1024;
    const bool fits = gemm.key.n == 3 * 192;  // 40 x 3 tiles of 132 processors
    EXPECT_STREQ(gemm.kernels.front()->name, gelu || fits ? "hopper" : "cublaslt") << gemm.key.op;
    EXPECT_STREQ(gemm.kernels.back()->name, "cublaslt 15") << gemm.key.op;
    EXPECT_EQ(listed(gemm, "cublaslt"), 16u) << gemm.key.op;
    own += gelu;
  }
  EXPECT_EQ(own, 1u);
  EXPECT_EQ(gemms.size(), 9u) << "patches, qkv, proj, fc1, fc2, the last three for a token alone, head";
}

TEST(TuneGpu, ATableDecidesForItsGemmAlone) {
  const ExecutionPlan plan = planned(DType::kBF16);
  KernelTable table;
  table.set({{"linear+bias bf16", 10, 576, 192, 0, 90}, {"cublaslt 3"}});
  const ExecutionPlan tuned = planned(DType::kBF16, std::make_shared<KernelTable>(table));
  int changed = 0;
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    if (plan.choices[i].launches[0].kernel == tuned.choices[i].launches[0].kernel) continue;
    EXPECT_STREQ(tuned.choices[i].launches[0].kernel->name, "cublaslt 3");
    EXPECT_NE(plan.program.nodes[i].name.find("qkv"), std::string::npos) << plan.program.nodes[i].name;
    ++changed;
  }
  EXPECT_EQ(changed, 12);
  EXPECT_EQ(plan.memory.peak_bytes(), tuned.memory.peak_bytes());
  // What is tuned already is measured against the usual kernel all the same.
  const std::vector<PlannedGemm> again = gemms_to_tune({&tuned});
  const auto qkv =
      std::find_if(again.begin(), again.end(), [](const PlannedGemm& p) { return p.key.n == 3 * 192; });
  ASSERT_NE(qkv, again.end());
  EXPECT_STREQ(qkv->kernels.front()->name, "hopper_small");
}

TEST(TuneGpu, TheUsualKernelStaysUnlessOneIsClearlyFaster) {
  EXPECT_EQ(preferred({{"a", 100}, {"b", 100.9}, {"c", 90}}).kernel, "a");
  EXPECT_EQ(preferred({{"a", 100}, {"b", 100.9}, {"c", 102}}).kernel, "c");
  EXPECT_EQ(preferred({{"a", 100}}).kernel, "a");
}

}  // namespace
}  // namespace vitrail
