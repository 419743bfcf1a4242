// Tuned kernels and device files: made here in a moment, used, and ignored when they are not of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backend/cpu/gemm/onednn.h"
#include "backend/cpu/host/levels.h"
#include "cli/bench_options.h"
#include "measure/kernel_table_file.h"
#include "plan/device_file.h"
#include "run_words.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

const std::vector<std::string> kTunedModel = {"--weights", "rule", "--model",   "vit_tiny_patch16_224",
                                              "--image",   "32",   "--threads", "1"};

std::set<std::string> kernels_of_gemms(const nlohmann::json& profile) {
  std::set<std::string> names;
  for (const auto& row : profile["operations"])
    if (row["name"].get<std::string>().find("mlp.fc") != std::string::npos) names.insert(row["kernel"]);
  return names;
}

// A table that puts `kernel` first for every GEMM of the model above: 5 tokens, width 192.
KernelTable table_for(const std::string& kernel) {
  KernelTable table;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{576, 192}, {192, 192}, {768, 192}, {192, 768}})
    table.set({{"linear", 5, n, k, 1, static_cast<int>(best_isa())}, {kernel}});
  return table;
}

TEST(Tune, ReadsGemms) {
  EXPECT_EQ(parse_gemm("197x2304x768"), (GemmSize{197, 2304, 768}));
  for (const char* bad : {"", "1", "1x2", "1x2x", "x2x3", "1x0x3", "1x2x3x4", "axbxc", "1x2x99999999999"})
    EXPECT_THROW(parse_gemm(bad), Error) << bad;
}

TEST(Tune, WritesATableThatHoldsHereAndKeepsOtherRows) {
  const TempFolder folder;
  const std::string file = (folder.path() / "deep/er/kernels.json").string();
  const auto one =
      run_in_process("bench tune", {"--out", file, "--gemm", "5x16x8", "--rounds", "1", "--threads", "1"})
          .json();
  ASSERT_EQ(one["rows"].size(), 1u);
  EXPECT_GE(one["rows"][0]["gflops"].size(), 2u) << one.dump();
  run_in_process("bench tune", {"--out", file, "--gemm", "6x16x8", "--rounds", "1", "--threads", "2"});
  const KernelsFile read = read_kernels(file);
  ASSERT_NE(read.table, nullptr) << read.note;
  ASSERT_EQ(read.table->rows().size(), 2u);
  EXPECT_EQ(read.table->rows()[0].key.threads, 1);
  EXPECT_FALSE(read.table->rows()[0].kernels.empty());
}

// A table in the default place grows; one that --out names begins without its rows.
TEST(Tune, OnlyTheTableInUseIsExtended) {
  const TempFolder folder;
  const SetVariable home("XDG_CONFIG_HOME", folder.path().c_str());
  const auto rows = [](const std::vector<std::string>& words) {
    const auto answer =
        run_in_process("bench tune", std::vector<std::string>{"--rounds", "1", "--threads", "1"} + words);
    return read_kernels(answer.json()["file"]).table->rows().size();
  };
  EXPECT_EQ(rows({"--gemm", "5x16x8"}), 1u);
  EXPECT_EQ(rows({"--gemm", "6x16x8"}), 2u);
  EXPECT_EQ(rows({"--gemm", "7x16x8", "--out", (folder.path() / "other.json").string()}), 1u);
}

TEST(Kernels, ATableDecidesAndTheResultAgrees) {
  const TempFolder folder;
  const auto profile = [&](const std::string& kernels) {
    return run_in_process("profile",
                          kTunedModel + std::vector<std::string>{"--seconds", "0", "--kernels", kernels})
        .json();
  };
  const auto logits = [&](const std::string& kernels) {
    return run_in_process("bench infer", kTunedModel + std::vector<std::string>{"--seconds", "0", "--logits",
                                                                                "--kernels", kernels})
        .json()["logits"]
        .get<std::vector<double>>();
  };
  const std::vector<double> usual = logits("none");
  EXPECT_EQ(kernels_of_gemms(profile("none")), std::set<std::string>{"packed gemm"});
  for (const std::string kernel : {"gemm that packs", "gemm by bf16 parts", "onednn tiles"}) {
    const std::string file = (folder.path() / "table.json").string();
    write_kernels(file, table_for(kernel));
    const std::set<std::string> used = kernels_of_gemms(profile(file));
    if (used.contains("packed gemm") && kernel != "gemm that packs")
      continue;  // that library or instruction set is not here
    EXPECT_EQ(used, std::set<std::string>{kernel});
    const std::vector<double> got = logits(file);
    for (size_t i = 0; i < usual.size(); ++i) ASSERT_NEAR(got[i], usual[i], 1e-4) << kernel;
  }
}

TEST(Kernels, AFileThatWasAskedForMustBeUsable) {
  const TempFolder folder;
  for (const std::string& file : {folder.file("bad.json", "x"), folder.file("other.json", "{}"),
                                  (folder.path() / "nowhere.json").string()}) {
    try {
      run_in_process("plan", kTunedModel + std::vector<std::string>{"--kernels", file});
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_NE(error.message().find(file), std::string::npos) << error.message();
    }
  }
}

// Tables of earlier versions may rank kernels that are gone, as those by OpenBLAS are.
TEST(Kernels, ATableOfAKernelThatIsGoneSaysToTuneAnew) {
  const TempFolder folder;
  const std::string file = (folder.path() / "table.json").string();
  write_kernels(file, table_for("gemm that packs"));
  std::string text = read_file(file, 1 << 20);
  for (size_t at = 0; (at = text.find("gemm that packs", at)) != std::string::npos;)
    text.replace(at, std::string_view("gemm that packs").size(), "openblas tiles");
  const std::string old = folder.file("old.json", text);
  const KernelsFile read = read_kernels(old);
  EXPECT_EQ(read.table, nullptr);
  EXPECT_NE(read.note.find("\"openblas tiles\""), std::string::npos) << read.note;
  EXPECT_NE(read.note.find("bench tune"), std::string::npos) << read.note;
  try {
    run_in_process("plan", kTunedModel + std::vector<std::string>{"--kernels", old});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find("tune anew"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("bench tune"), std::string::npos) << error.hint();
  }
}

TEST(Kernels, TrainingTakesThePlainKernelOfARow) {
  if (!cpu::onednn().missing.empty()) GTEST_SKIP() << cpu::onednn().missing;
  const TempFolder folder;
  const std::string file = (folder.path() / "table.json").string();
  KernelTable table;
  // The tiny model: 5 tokens of 8 images, width 16.
  table.set({{"linear", 40, 32, 16, 1, static_cast<int>(best_isa())}, {"packed gemm", "onednn tiles"}});
  write_kernels(file, table);
  const std::string text =
      run_in_process(
          "bench train",
          tiny_model() + std::vector<std::string>{"--classes", "4", "--batch", "8", "--steps", "1",
                                                  "--threads", "1", "--profile", "--kernels", file},
          false)
          .out;
  const size_t row = text.find("blocks.*.mlp.fc1 ");
  ASSERT_NE(row, std::string::npos) << text;
  const std::string line = text.substr(row, text.find('\n', row) - row);
  EXPECT_TRUE(line.ends_with("onednn tiles")) << line;
}

TEST(Device, CalibrationIsReadBackAndPlanUsesIt) {
  const TempFolder folder;
  const std::string file = (folder.path() / "desk.json").string();
  const auto made = run_in_process("bench calibrate", {"--out", file, "--gemm", "20x64x32", "--name",
                                                       "a desk", "--rounds", "1", "--threads", "2"})
                        .json();
  const DeviceFile device = read_device_file(file);
  EXPECT_EQ(nlohmann::json(to_json(device)), made);
  EXPECT_EQ(device.name, "a desk");
  const auto& processor = std::get<CpuSpec>(device.spec);
  ASSERT_EQ(processor.rates.size(), 2u);
  EXPECT_GT(processor.gemm_share(), 0);
  const auto plan = run_in_process("plan", kTunedModel + std::vector<std::string>{"--target", file}).json();
  EXPECT_EQ(plan["target"], "a desk");
  EXPECT_GT(plan["run_s"].get<double>(), 0);
  EXPECT_NE(run_in_process("plan", kTunedModel + std::vector<std::string>{"--target", file}, false)
                .out.find("by the roofline of a desk"),
            std::string::npos);
}

// Rates that make sums easy: 100 GFLOP/s per thread, half of it in GEMMs, 10 GB/s.
const char* const kRound =
    R"({"format": "vitrail device 1", "kind": "cpu", "name": "round", "isa": "avx512", "cores": 4,
  "memory_bytes": 1073741824, "rates": [{"threads": 1, "fma_gflops": 100, "copy_gbps": 10},
  {"threads": 4, "fma_gflops": 400, "copy_gbps": 20}],
  "products": [{"m": 1, "n": 1, "k": 1, "threads": 4, "gflops": 200}]})";

TEST(Device, RatesGoByThreads) {
  const TempFolder folder;
  const auto device = std::get<CpuSpec>(read_device_file(folder.file("d.json", kRound)).spec);
  EXPECT_DOUBLE_EQ(device.gemm_share(), 0.5);
  EXPECT_DOUBLE_EQ(device.rate(1).fma_gflops, 100);
  EXPECT_DOUBLE_EQ(device.rate(2).fma_gflops, 200);
  EXPECT_DOUBLE_EQ(device.rate(8).fma_gflops, 800);
  EXPECT_DOUBLE_EQ(device.rate(8).copy_gbps, 20);
}

TEST(Device, PlansForAProcessorThatIsNotHere) {
  const TempFolder folder;
  const std::string file = folder.file("d.json", kRound);
  const std::vector<std::string> base = {"--weights", "rule", "--model", "vit_base_patch16_224",
                                         "--target",  file};
  const auto plan = run_in_process("plan", base + std::vector<std::string>{"--batch", "8"}).json();
  EXPECT_EQ(plan["device"], "cpu (avx512, 4 threads)");
  EXPECT_EQ(plan["memory_available"], 1 << 30);
  // The bound is 8 images at 200 GFLOP/s: the GEMMs alone, with only the class token's of the last block, and
  // not much more.
  const double least = 2 * 8 * plan["macs"].get<double>() * 11 / 12 / 200e9;
  EXPECT_GT(plan["run_s"].get<double>(), least);
  EXPECT_LT(plan["run_s"].get<double>(), 2 * least);
  const auto train =
      run_in_process("plan", base + std::vector<std::string>{"--train", "--batch", "2", "--classes", "10"})
          .json();
  EXPECT_EQ(train["target"], "round");
  EXPECT_GT(train["update_s"].get<double>(), 3 * least / 4);
  for (const IsaLevel level : all_isa_levels()) {
    const std::vector<std::string> isa = {"--isa", to_string(level)};
    EXPECT_GT(run_in_process("plan", kTunedModel + isa).json()["memory"]["peak"].get<double>(), 0);
    EXPECT_GT(run_in_process("plan", kTunedModel + isa + std::vector<std::string>{"--train"})
                  .json()["memory"]["peak"]
                  .get<double>(),
              0);
  }
}

TEST(Device, OnlyWhatWasMeasuredIsEstimated) {
  const TempFolder folder;
  const std::vector<std::string> target = {"--target", folder.file("d.json", kRound)};
  const auto plan = [&](const std::vector<std::string>& more) {
    return run_in_process("plan", std::vector<std::string>{"--weights", "rule"} + target + more).json();
  };
  EXPECT_EQ(plan({"--isa", "avx512", "--threads", "2"})["device"], "cpu (avx512, 2 threads)");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--isa", "amx"}, {"--isa", "avx2"}, {"--threads", "5"}, {"--train", "--isa", "avx2"}})
    EXPECT_THROW(plan(more), Error) << more.back();
}

TEST(Device, ANameReachesNoTerminalAsItIs) {
  const TempFolder folder;
  auto json = nlohmann::json::parse(kRound);
  json["name"] = "red \x1b[31m";
  EXPECT_EQ(read_device_file(folder.file("d.json", json.dump())).name.find('\x1b'), std::string::npos);
  json["kind"] = "gpu";
  EXPECT_THROW(read_device_file(folder.file("d.json", json.dump())), Error);
}

TEST(Device, FilesThatAreNoneAreRefused) {
  const TempFolder folder;
  const nlohmann::json good = nlohmann::json::parse(kRound);
  for (const char* name : {"format", "name", "isa", "cores", "memory_bytes", "rates", "products"}) {
    nlohmann::json bad = good;
    bad.erase(name);
    EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())), Error) << name;
    bad[name] = nlohmann::json::array();
    EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())), Error) << name;
  }
  nlohmann::json bad = good;
  bad["rates"][0]["fma_gflops"] = -1;
  EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())), Error);
  bad = good;
  bad["isa"] = "neon";
  EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())).info(0), Error);
}

}  // namespace
}  // namespace vitrail::cli
