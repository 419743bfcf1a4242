// Tuned kernels of a GPU: which GEMMs of a program can be tuned, and the table's file. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/engine.h"
#include "backend/cuda/kernels.h"
#include "cli/kernels_file.h"
#include "cli/train_plan.h"
#include "cli/tune_gpu.h"
#include "in_process.h"
#include "models/zoo.h"

namespace vitrail::cli {
namespace {

const TunedDevice kCard{"NVIDIA H200 (made up)", 90, "13.1.0"};
const DeviceInfo kInfo = planned_cuda_device(kCard.name, 90);

ExecutionPlan planned(DType dtype, std::shared_ptr<const KernelTable> kernels = nullptr, int64_t batch = 2) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  config.image_height = config.image_width = 32;
  return plan_inference(config, {.backend = "cuda", .batch = batch, .compute = dtype, .kernels = kernels},
                        kInfo);
}

size_t listed(const PlannedProduct& product, std::string_view start) {
  return static_cast<size_t>(
      std::count_if(product.kernels.begin(), product.kernels.end(),
                    [&](const Kernel* kernel) { return std::string_view(kernel->name).starts_with(start); }));
}

TEST(TuneGpu, OffersEachProductOnceWithAllItsKernels) {
  const ExecutionPlan plan = planned(DType::kBF16);
  const std::vector<PlannedProduct> products = products_to_tune({&plan, &plan});
  ASSERT_GE(products.size(), 6u) << "patches, qkv, proj, fc1, fc2, head";
  for (size_t i = 0; i < products.size(); ++i) {
    const PlannedProduct& product = products[i];
    EXPECT_EQ(listed(product, "cublaslt"), 16u) << product.key.op;
    EXPECT_EQ(listed(product, "hopper"), product.key.op.starts_with("linear") ? 1u : 0u) << product.key.op;
    EXPECT_EQ(listed(product, "tiled"), 0u) << product.key.op;
    EXPECT_STREQ(product.kernels.front()->name, "cublaslt");
    EXPECT_EQ(product.key.isa, 90);
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(products[j].key == product.key) << product.key.op;
  }
  const auto qkv = std::find_if(products.begin(), products.end(),
                                [](const PlannedProduct& p) { return p.key.n == 3 * 192; });
  ASSERT_NE(qkv, products.end());
  EXPECT_EQ(qkv->key, (TuneKey{"linear+bias bf16", 10, 576, 192, 0, 90}));
  EXPECT_EQ(qkv->nodes, 2 * 12);
}

TEST(TuneGpu, OffersWhatRunsWithoutATableFirst) {
  const ExecutionPlan plan = planned(DType::kBF16, nullptr, 1024);
  const std::vector<PlannedProduct> products = products_to_tune({&plan});
  size_t own = 0;
  for (const PlannedProduct& product : products) {
    const bool gelu = product.key.op == "linear+bias+gelu bf16" && product.key.m > 1024;
    EXPECT_STREQ(product.kernels.front()->name, gelu ? "hopper" : "cublaslt") << product.key.op;
    EXPECT_STREQ(product.kernels.back()->name, "cublaslt 15") << product.key.op;
    EXPECT_EQ(listed(product, "cublaslt"), 16u) << product.key.op;
    own += gelu;
  }
  EXPECT_EQ(own, 1u);
  EXPECT_EQ(products.size(), 9u) << "patches, qkv, proj, fc1, fc2, the last three for a token alone, head";
}

TEST(TuneGpu, KnowsTheProductsOfATrainingStepByItsOwnOptions) {
  const std::vector<std::string> arguments = {"--train",   "-m",      "vit_tiny_patch16_224",
                                              "--batch",   "2",       "--dtype",
                                              "bf16",      "--image", "32",
                                              "--classes", "16",      "--device",
                                              "cuda"};
  const Options options = parse_options(
      command_named("bench tune").spec, arguments, [](const std::string&) { return nullptr; },
      read_config_file);
  ASSERT_TRUE(asks_for_training(options));
  const TrainPlan plan(options, kInfo);
  std::set<std::string> kinds;
  for (const PlannedProduct& product : products_to_tune(plan.step().programs()))
    kinds.insert(product.key.op.substr(0, product.key.op.find_first_of("+ ")));
  for (const char* kind : {"linear", "linear_dx", "linear_dw", "patch_embed", "patch_embed_dw"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

TEST(TuneGpu, ATableDecidesForItsProductAlone) {
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
  // A GEMM that is tuned already is still measured against the default kernel.
  EXPECT_STREQ(products_to_tune({&tuned})[0].kernels.front()->name, "cublaslt");
}

TEST(TuneGpu, TheUsualKernelStaysUnlessOneIsClearlyFaster) {
  EXPECT_EQ(preferred({{"a", 100}, {"b", 100.9}, {"c", 90}}).kernel, "a");
  EXPECT_EQ(preferred({{"a", 100}, {"b", 100.9}, {"c", 102}}).kernel, "c");
  EXPECT_EQ(preferred({{"a", 100}}).kernel, "a");
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
  EXPECT_NE(refused({"--device", "cuda", "--product", "1x2x3"}).find("--product"), std::string::npos);
}

TEST(CardKernels, AreReadBackForTheSameCardAndLibraryOnly) {
  const TempFolder folder;
  const std::string file = (folder.path() / "made/card.json").string();
  KernelTable table;
  table.set({{"linear+bias bf16", 197, 2304, 768, 0, 90}, {"cublaslt 3"}});
  table.set({{"linear_dw+accumulate bf16 to f32", 768, 768, 197, 0, 90}, {"cublaslt"}});
  write_kernels(file, table, kCard);
  const KernelsFile read = read_kernels(file, kCard);
  ASSERT_NE(read.table, nullptr) << read.note;
  EXPECT_EQ(read.table->hash(), table.hash());

  const auto note = [&](const std::string& path, const TunedDevice& device) {
    const KernelsFile other = read_kernels(path, device);
    EXPECT_EQ(other.table, nullptr);
    return other.note;
  };
  EXPECT_NE(note(file, {kCard.name, 90, "13.2.0"}).find("13.1.0"), std::string::npos);
  EXPECT_NE(note(file, {"NVIDIA L4", 89, "13.1.0"}).find("NVIDIA H200"), std::string::npos);
  EXPECT_NE(note(file, this_processor()).find("processor"), std::string::npos);

  auto json = nlohmann::json::parse(read_file(file, 1 << 20));
  EXPECT_FALSE(json["rows"][0].contains("threads"));
  json["vitrail"] = "0.0.1";  // its algorithms are the library's, so that a table outlives a release
  EXPECT_NE(read_kernels(folder.file("older.json", json.dump()), kCard).table, nullptr);
  json["rows"][0]["m"] = 0;
  EXPECT_NE(note(folder.file("bad.json", json.dump()), kCard).find("'m'"), std::string::npos);
}

TEST(CardKernels, AreFoundByTheCardsName) {
  const TempFolder folder;
  const std::string own = default_kernels_path(kCard);  // empty where there is no home
  EXPECT_TRUE(own.empty() || own.ends_with("kernels-nvidia-h200-made-up.json")) << own;
  EXPECT_EQ(shipped_kernels_path(kCard, {folder.path()}), "");
  const std::string file = folder.file("shipped/nvidia-h200-made-up.json", "{}");
  const std::vector<std::filesystem::path> places = {folder.path(), folder.path() / "shipped"};
  EXPECT_EQ(shipped_kernels_path(kCard, places), file);
  EXPECT_EQ(shipped_kernels_path({"NVIDIA H200 (made up)", 0, ""}, places), "") << "a processor of that name";
}

}  // namespace
}  // namespace vitrail::cli
