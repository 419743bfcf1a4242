// `bench tune` of a GPU: the GEMMs of a training step by its options. No GPU is needed.
#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/kernels.h"
#include "cli/train_plan.h"
#include "in_process.h"
#include "measure/tuner_gpu.h"

namespace vitrail::cli {
namespace {

const DeviceInfo kInfo = planned_cuda_device("NVIDIA H200 (synthetic)", 90);

TEST(TuneGpu, KnowsTheGemmsOfATrainingStepByItsOwnOptions) {
  const std::vector<std::string> arguments = {"--train",   "-m",      "vit_tiny_patch16_224",
                                              "--batch",   "2",       "--dtype",
                                              "bf16",      "--image", "32",
                                              "--classes", "16",      "--device",
                                              "cuda"};
  const Options options = parse_options(
      command_named("bench tune").spec, arguments, [](const std::string&) { return nullptr; },
      read_config_file);
  ASSERT_TRUE(asks_for_training(options));
  const RunPlan plan = planned_run(options, kInfo);
  std::set<std::string> kinds;
  for (const PlannedGemm& gemm : gemms_to_tune(plan.step().programs()))
    kinds.insert(gemm.key.op.substr(0, gemm.key.op.find_first_of("+ ")));
  for (const char* kind : {"linear", "linear_dx", "linear_dw", "patch_embed", "patch_embed_dw"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

TEST(TuneGpu, CommandsSayWhatBelongsToWhichDevice) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    try {
      run_in_process("bench tune", arguments);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.message();
      return error.message();
    }
  };
  EXPECT_NE(refused({"--train"}).find("--train"), std::string::npos);
  EXPECT_NE(refused({"--batch", "2"}).find("--batch"), std::string::npos);
  EXPECT_NE(refused({"--device", "cuda", "--gemm", "1x2x3"}).find("--gemm"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::cli
