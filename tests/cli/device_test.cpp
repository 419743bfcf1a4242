// Devices by name, rates by number type, and how busy a machine was.
#include <gtest/gtest.h>

#include "measure/host_load.h"
#include "plan/device_file.h"
#include "run_words.h"
#include "source_root.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

TEST(DevicePath, EveryDeviceOfTheTreeIsReadAndPlannedFor) {
  for (const auto& entry : fs::directory_iterator(fs::path(VT_SOURCE_DIR) / "configs/devices")) {
    if (entry.path().extension() != ".json") continue;
    const auto plan = run_in_process("plan", {"--weights", "rule", "--model", "vit_base_patch16_224",
                                              "--target", entry.path().string()})
                          .json();
    EXPECT_GT(plan["run_s"].get<double>(), 0) << entry.path();
  }
}

// No device file is of the reference backend.
TEST(DevicePath, AnInferenceWithoutADeviceFileSaysWhatBringsATime) {
  const std::vector<std::string> words = {"--weights", "rule", "--model", "vit_tiny_patch16_224",
                                          "--backend", "ref"};
  const std::string text = run_in_process("plan", words, false).out;
  EXPECT_NE(text.find("not known without a device file"), std::string::npos) << text;
  EXPECT_NE(text.find("vitrail bench calibrate --out FILE"), std::string::npos) << text;
  EXPECT_FALSE(run_in_process("plan", words).json().contains("run_s"));
}

// The device has 100 GFLOP/s, f32 GEMMs at half of it, and memory so fast that arithmetic decides.
nlohmann::json easy_device() {
  return nlohmann::json::parse(
      R"({"format": "vitrail device 1", "kind": "cpu", "name": "easy", "isa": "avx2", "cores": 1,
  "memory_bytes": 17179869184, "rates": [{"threads": 1, "fma_gflops": 100, "copy_gbps": 1e6}],
  "products": [{"m": 1, "n": 1, "k": 1, "threads": 1, "gflops": 50}]})");
}

void measure(nlohmann::json& device, const char* dtype, double gflops) {
  device["products"].push_back(
      {{"m", 1}, {"n", 1}, {"k", 1}, {"threads", 1}, {"gflops", gflops}, {"dtype", dtype}});
}

Answer planned(const nlohmann::json& device, const std::vector<std::string>& more, bool json = true) {
  const TempFolder folder;
  return run_in_process("plan",
                        std::vector<std::string>{"--weights", "rule", "--model", "vit_base_patch16_224",
                                                 "--target", folder.file("d.json", device.dump())} +
                            more,
                        json);
}

TEST(DeviceRates, AreThoseOfTheTypeWhereItWasMeasured) {
  nlohmann::json device = easy_device();
  measure(device, "bf16", 200);
  measure(device, "int8", 500);
  const auto seconds = [&](const char* dtype) {
    const auto plan = planned(device, {"--dtype", dtype}).json();
    EXPECT_TRUE(plan["unmeasured"].empty()) << plan["unmeasured"];
    return plan["run_s"].get<double>();
  };
  const double plain = seconds("f32");
  // Attention, a tenth of the work, stays in f32.
  EXPECT_LT(seconds("bf16"), 0.4 * plain);
  EXPECT_GT(seconds("bf16"), 0.25 * plain);
  EXPECT_LT(seconds("int8"), 0.8 * seconds("bf16"));
}

TEST(DeviceRates, OfATypeNotMeasuredAreThoseOfF32AndThatIsSaid) {
  const nlohmann::json device = easy_device();
  // Both types have the same nodes when nothing is fused.
  const double plain = planned(device, {"--no-fuse"}).json()["run_s"].get<double>();
  const auto plan = planned(device, {"--no-fuse", "--dtype", "int8"}).json();
  EXPECT_EQ(plan["unmeasured"], nlohmann::json::parse(R"(["int8"])"));
  EXPECT_NEAR(plan["run_s"].get<double>(), plain, 1e-6 * plain);
  EXPECT_NE(planned(device, {"--dtype", "int8"}, false).out.find("int8 at the rate of f32"),
            std::string::npos);
  EXPECT_EQ(planned(device, {}, false).out.find("at the rate of"), std::string::npos);
}

TEST(DeviceRates, TrainingTakesThemToo) {
  const std::vector<std::string> train = {"--train", "--batch", "2", "--classes", "10", "--dtype", "bf16"};
  nlohmann::json device = easy_device();
  const auto before = planned(device, train).json();
  EXPECT_EQ(before["unmeasured"], nlohmann::json::parse(R"(["bf16"])"));
  EXPECT_NE(planned(device, train, false).out.find("bf16 at the rate of f32"), std::string::npos);
  measure(device, "bf16", 200);
  const auto after = planned(device, train).json();
  EXPECT_TRUE(after["unmeasured"].empty());
  EXPECT_LT(after["update_s"].get<double>(), 0.5 * before["update_s"].get<double>());
}

// An update of four micro-batches takes four times a micro-batch's time, and the optimizer's once.
TEST(DeviceRates, EveryMicroBatchOfAnUpdateTakesItsTime) {
  const auto update_s = [](const std::vector<std::string>& batch) {
    return planned(easy_device(), std::vector<std::string>{"--train", "--classes", "10"} + batch)
        .json()["update_s"]
        .get<double>();
  };
  const double whole = update_s({"--batch", "8"});
  const double parts = update_s({"--batch", "2", "--set", "train.batch=8"});
  EXPECT_NEAR(parts, whole, 0.05 * whole);
}

TEST(DeviceRates, AFileNeedsAProductInF32) {
  const TempFolder folder;
  nlohmann::json device = easy_device();
  device["products"][0]["dtype"] = "int8";
  EXPECT_THROW(read_device_file(folder.file("d.json", device.dump())), Error);
  device["products"][0]["dtype"] = 8;
  EXPECT_THROW(read_device_file(folder.file("d.json", device.dump())), Error);
}

TEST(DeviceRates, WhatNoProcessorHasIsRefusedByFileAndKey) {
  const TempFolder folder;
  const auto refusal = [&](const nlohmann::json& device) {
    try {
      read_device_file(folder.file("lab.json", device.dump()));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find("lab.json"), std::string::npos) << error.message();
      return error.message();
    }
    return std::string("accepted");
  };
  nlohmann::json device = easy_device();
  EXPECT_EQ(refusal(device), "accepted");
  for (const char* isa : {"avx9000", ""}) {
    device["isa"] = isa;
    EXPECT_NE(refusal(device).find("'isa' is"), std::string::npos) << isa;
  }
  device = easy_device();
  device["rates"].push_back(device["rates"][0]);
  EXPECT_NE(refusal(device).find("two rows for 1 thread"), std::string::npos) << refusal(device);
  for (const char* list : {"rates", "products"}) {
    device = easy_device();
    device[list][0]["threads"] = 2;
    EXPECT_NE(refusal(device).find(list), std::string::npos) << refusal(device);
  }
}

TEST(DeviceRates, CalibrationMeasuresEveryType) {
  const auto device = run_in_process("bench calibrate", {"--gemm", "20x64x64", "--rounds", "1", "--threads",
                                                         "1", "--isa", "baseline"})
                          .json();
  std::set<std::string> types;
  for (const auto& gemm : device["products"]) types.insert(gemm["dtype"].get<std::string>());
  EXPECT_TRUE(types.contains("f32"));
  const auto best =
      run_in_process("bench calibrate", {"--gemm", "20x64x64", "--rounds", "1", "--threads", "1"}).json();
  EXPECT_EQ(best["products"].size(), 3u) << best;
}

// The names that doctor prints; those of data sheets describe no processor.
TEST(DevicePath, ACheckTakesTheNamesOfDevices) {
  const Ended ended = run_words({"bench", "calibrate", "--check", "t4", "--threads", "1"});
  EXPECT_EQ(ended.code, 65);
  EXPECT_NE(ended.err.find("t4.json does not describe this machine: it is of a cuda"), std::string::npos)
      << ended.err;
}

// Otherwise with one thread and with --threads.
TEST(DeviceRates, CalibrationTakesTheThreadsThatAreNamed) {
  const auto threads = [](const std::vector<std::string>& more) {
    const std::vector<std::string> base = {"--gemm", "20x64x64", "--rounds", "1", "--isa", "baseline"};
    std::vector<int> counts;
    const auto json = run_in_process("bench calibrate", base + more).json();
    for (const auto& rate : json["rates"]) counts.push_back(rate["threads"]);
    return counts;
  };
  EXPECT_EQ(threads({"--threads", "3"}), (std::vector<int>{1, 3}));
  EXPECT_EQ(threads({"--threads", "3", "--at-threads", "2", "--at-threads", "1"}), (std::vector<int>{2, 1}));
}

TEST(HostLoad, CountsAllButIdleTime) {
  // user nice system idle iowait irq softirq steal guest
  EXPECT_DOUBLE_EQ(busy_seconds("cpu  100 20 30 9999 888 4 5 41 77 0\ncpu0 1 2 3 4\n", 100), 2.0);
  EXPECT_DOUBLE_EQ(busy_seconds("cpu  100 100\n", 100), 2.0);
  for (const char* text : {"", "cpu", "cpu0 1 2 3", "intr 5"}) EXPECT_EQ(busy_seconds(text, 100), 0) << text;
}

TEST(HostLoad, WarnsFromATwentiethOfTheMachine) {
  EXPECT_EQ(busy_warning(0.1, 2), "");
  EXPECT_EQ(busy_warning(0.7, 16), "");
  EXPECT_NE(busy_warning(1.25, 2).find("1.2 of 2 cores"), std::string::npos) << busy_warning(1.25, 2);
}

TEST(HostLoad, IsNeverNegative) {
  const HostLoad others;
  double sum = 0;
  for (int i = 0; i < 2'000'000; ++i) sum += 1e-6 * i;
  EXPECT_GT(sum, 0);
  EXPECT_GE(others.cores(), 0);
}

}  // namespace
}  // namespace vitrail::cli
