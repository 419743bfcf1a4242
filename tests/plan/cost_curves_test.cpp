// Curves of measured nodes: the time of a node between, beyond and beside the points.
#include "plan/cost_curves.h"

#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "plan/node_times.h"
#include "plan/target.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

Roofline roofline(int threads) {
  return {{{"f32", 1e11 * threads}}, 2e10};
}

NodeSize gemm(double m, double n, double k) {
  return {2 * m * n * k, 4 * (m * n + n * k + m * k), m * k, m * n};
}

// A kernel that starts in 5 us and reaches a part of its peak that falls with small sizes.
double law(const NodeSize& size, int threads) {
  const double full = size.flops / (0.8e11 * threads);
  return 5e-6 + full * (1 + 3e-5 / (full + 1e-5));
}

CostCurve linear(int threads = 2, const char* kernel = "packed", const char* kind = "linear+bias") {
  return {kind, kernel, "f32", threads, {}};
}

CostCurves grid(int threads = 2) {
  CostCurves curves;
  for (const double m : {1, 8, 64, 512, 4096})
    for (const double width : {192, 384, 768, 1024})
      for (const double n : {width, 4 * width}) {
        const NodeSize size = gemm(50 * m, n, width);
        curves.add(linear(threads), {size, law(size, threads)});
      }
  return curves;
}

TEST(CostCurves, AMeasuredSizeTakesWhatWasMeasured) {
  const CostCurves curves = grid();
  for (const double m : {50, 400, 25600})
    for (const double width : {192, 1024}) {
      const NodeSize size = gemm(m, width, width);
      EXPECT_NEAR(*curves.seconds(linear(), size, roofline) / law(size, 2), 1, 0.02) << m << " " << width;
    }
}

TEST(CostCurves, BetweenAndBeyondThePointsTheTimeIsClose) {
  const CostCurves curves = grid();
  for (const double m : {70, 150, 197, 1000, 3000, 50432, 100864})
    for (const double width : {192, 512, 768, 1280}) {
      const NodeSize size = gemm(m, 3 * width, width);
      EXPECT_NEAR(*curves.seconds(linear(), size, roofline) / law(size, 2), 1, 0.1) << m << " " << width;
    }
}

TEST(CostCurves, ASizeMeasuredTwiceTakesTheMean) {
  CostCurves curves;
  const NodeSize size = gemm(100, 100, 100);
  for (const double seconds : {5e-4, 15e-4}) curves.add(linear(), {size, seconds});
  ASSERT_EQ(curves.curves().size(), 1u);
  ASSERT_EQ(curves.curves()[0].points.size(), 1u);
  EXPECT_NEAR(*curves.seconds(linear(), size, roofline), 1e-3, 1e-6);
}

TEST(CostCurves, StayApartInWhateverOrderTheyCome) {
  CostCurves curves;
  const NodeSize size = gemm(100, 100, 100);
  for (const int threads : {8, 2, 4}) curves.add(linear(threads), {size, 1e-3 * threads});
  ASSERT_EQ(curves.curves().size(), 3u);
  for (const int threads : {2, 4, 8})
    EXPECT_NEAR(*curves.seconds(linear(threads), size, roofline), 1e-3 * threads, 1e-6) << threads;
}

TEST(CostCurves, OtherKernelsAndKindsStandInForOneThatWasNotMeasured) {
  const CostCurves curves = grid();
  const NodeSize size = gemm(400, 768, 768);
  const double known = *curves.seconds(linear(), size, roofline);
  EXPECT_DOUBLE_EQ(*curves.seconds(linear(2, "another"), size, roofline), known);
  EXPECT_DOUBLE_EQ(*curves.seconds(linear(2, "x", "layernorm+linear+bias+gelu"), size, roofline), known);
  EXPECT_FALSE(curves.seconds(linear(2, "x", "attention"), size, roofline));
  CostCurve low = linear();
  low.type = "bf16";
  EXPECT_FALSE(curves.seconds(low, size, roofline));
}

TEST(CostCurves, ThreadsBetweenAndBeyondThoseMeasured) {
  CostCurves curves = grid(2);
  const CostCurves eight = grid(8);
  for (const CostCurve& curve : eight.curves())
    for (const CostPoint& point : curve.points) curves.add(linear(8), point);
  const NodeSize size = gemm(12800, 3072, 768);
  for (const int threads : {1, 2, 3, 4, 6, 8, 16})
    EXPECT_NEAR(*curves.seconds(linear(threads), size, roofline) / law(size, threads), 1, 0.1) << threads;
}

// The gradient of attention on one thread a head: few heads leave threads idle, whatever the FLOPs are.
TEST(CostCurves, AttentionGoesByItsHeadsAndTokens) {
  const auto size_of = [](double heads, double tokens) {
    return NodeSize{20 * heads * tokens * tokens * 64, 4 * 7 * heads * tokens * 64, 3 * heads * tokens * 64,
                    3 * heads * tokens * 64};
  };
  const auto law = [](const NodeSize& size, double heads) {
    return size.flops / (5e9 * std::min(heads, 16.0));
  };
  CostCurves curves;
  const CostCurve curve{"attention_grad", "k", "f32", 16, {}};
  for (const double heads : {3, 12, 24, 96, 192})
    for (const double tokens : {50, 197, 577, 1025}) {
      const NodeSize size = size_of(heads, tokens);
      curves.add(curve, {size, law(size, heads)});
    }
  for (const double heads : {3, 6, 48})
    for (const double tokens : {257, 785, 1025}) {
      const NodeSize size = size_of(heads, tokens);
      EXPECT_NEAR(*curves.seconds(curve, size, roofline) / law(size, heads), 1, 0.15)
          << heads << " " << tokens;
    }
}

// Files of a GPU with curves, and of one that is like it.
nlohmann::json measured() {
  return nlohmann::json::parse(
      R"({"format": "vitrail device 2", "kind": "cuda", "name": "G", "source": "here",
    "compute": 90, "processors": 100, "memory_bytes": 80000000000, "l2_bytes": 50000000,
    "sheet": {"url": "a sheet", "tflops": {"f32": 60, "bf16": 1000}, "gbps": 4000},
    "copy_gbps": 3000, "tflops": {"f32": 30, "bf16": 700},
    "curves": [{"kind": "linear", "kernel": "k", "type": "bf16", "threads": 1,
                "points": [[2000000, 60000, 3000, 10000, 1e-5]]}]})");
}
nlohmann::json alike() {
  nlohmann::json device = measured();
  for (const char* name : {"copy_gbps", "tflops", "curves"}) device.erase(name);
  device["sheet"] = {
      {"url", "another"}, {"tflops", {{"f32", 20}, {"bf16", 500}, {"f16", 400}}}, {"gbps", 2000}};
  device["like"] = "first";
  return device;
}

TEST(DeviceFormat, CurvesAreReadBack) {
  const TempFolder folder;
  const DeviceFile device = read_device_file(folder.file("d.json", measured().dump()));
  ASSERT_EQ(device.curves.curves().size(), 1u);
  EXPECT_EQ(device.curves.curves()[0].points[0].size, (NodeSize{2000000, 60000, 3000, 10000}));
  const DeviceFile again = read_device_file(folder.file("e.json", file_text(device)));
  EXPECT_EQ(to_json(again), to_json(device));
}

TEST(DeviceFormat, CurvesOfOlderFilesHaveTodaysKinds) {
  const TempFolder folder;
  nlohmann::json old = measured();
  old["curves"][0]["kind"] = "many adam_update+copy_into";
  const DeviceFile device = read_device_file(folder.file("d.json", old.dump()));
  ASSERT_EQ(device.curves.curves().size(), 1u);
  EXPECT_EQ(device.curves.curves()[0].kind, "grouped adam_update+copy_into");
}

TEST(DeviceFormat, ADeviceLikeAnotherReachesTheSameShareOfItsSheet) {
  const TempFolder folder;
  folder.file("first.json", measured().dump());
  const DeviceFile device = read_device_file(folder.file("d.json", alike().dump()));
  EXPECT_FALSE(device.is_measured());
  const auto& gpu = std::get<GpuSpec>(device.spec);
  EXPECT_DOUBLE_EQ(gpu.copy_gbps, 1500);
  EXPECT_DOUBLE_EQ(gpu.tflops.at("f32"), 10);
  EXPECT_DOUBLE_EQ(gpu.tflops.at("bf16"), 350);
  EXPECT_DOUBLE_EQ(gpu.tflops.at("f16"), 200) << "no such type there: the share of f32";
}

std::string refusal(const nlohmann::json& device) {
  const TempFolder folder;
  folder.file("first.json", measured().dump());
  try {
    read_device_file(folder.file("d.json", device.dump()));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.message();
  }
  return "accepted";
}

TEST(DeviceFormat, WhatNoDeviceHasIsRefusedByName) {
  const std::pair<const char*, nlohmann::json> bad[] = {{"copy_gbps", 0},
                                                        {"copy_gbps", -5},
                                                        {"copy_gbps", 1e30},
                                                        {"copy_gbps", "fast"},
                                                        {"tflops", {{"f32", 1e30}}},
                                                        {"tflops", {{"f32", 0}}},
                                                        {"tflops", {{"bf16", 1}}},
                                                        {"memory_bytes", 1},
                                                        {"memory_bytes", 1e30},
                                                        {"memory_bytes", 1.5e9 + 0.5},
                                                        {"processors", 0},
                                                        {"compute", -1},
                                                        {"l2_bytes", 0},
                                                        {"foreign_bytes", 80000000000},
                                                        {"name", ""},
                                                        {"source", 5},
                                                        {"kind", "tpu"},
                                                        {"format", "vitrail device 3"},
                                                        {"sheet", {{"url", "x"}}},
                                                        {"curves", nlohmann::json::array()},
                                                        {"like", "../first"}};
  for (const auto& [name, value] : bad) {
    nlohmann::json device = measured();
    device[name] = value;
    const std::string says = refusal(device);
    EXPECT_NE(says.find("is no device file"), std::string::npos) << name << ": " << says;
    const bool named = says.find(name) != std::string::npos || says.find(value.dump()) != std::string::npos ||
                       says.find("it describes a tpu") != std::string::npos;
    EXPECT_TRUE(named) << name << ": " << says;
  }
}

TEST(DeviceFormat, MisspeltAndMissingMembersAreNamed) {
  nlohmann::json device = measured();
  device["copygbps"] = 5;
  EXPECT_NE(refusal(device).find("'copygbps'"), std::string::npos);
  for (const char* name :
       {"source", "compute", "processors", "memory_bytes", "l2_bytes", "copy_gbps", "tflops"}) {
    device = measured();
    device.erase(name);
    EXPECT_NE(refusal(device).find(name), std::string::npos) << name;
  }
  for (size_t i = 0; i < 5; ++i) {
    device = measured();
    device["curves"][0]["points"][0] = {1, 2, 3, 4, 5};
    device["curves"][0]["points"][0][i] = -1;
    EXPECT_NE(refusal(device).find("-1"), std::string::npos) << i << ": " << refusal(device);
  }
  device = measured();
  device["curves"][0]["type"] = "zz";
  EXPECT_NE(refusal(device).find("\"zz\""), std::string::npos) << refusal(device);
  device = alike();
  device.erase("sheet");
  EXPECT_NE(refusal(device).find("'sheet'"), std::string::npos);
  device = alike();
  device["copy_gbps"] = 100;
  EXPECT_NE(refusal(device).find("'like' and measured figures"), std::string::npos);
}

TEST(DeviceFormat, AFileLikeItselfIsRefused) {
  const TempFolder folder;
  nlohmann::json device = alike();
  device["like"] = "d";
  const std::string path = folder.file("d.json", device.dump());
  try {
    read_device_file(path);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("itself like another"), std::string::npos) << error.what();
  }
}

TEST(DeviceFormat, TypesWithoutCurvesGoByTheRoofline) {
  const DeviceFile h200 = read_device_file(std::string(VT_SOURCE_DIR) + "/configs/devices/h200.json");
  EXPECT_TRUE(is_timed(h200, "bf16"));
  EXPECT_TRUE(is_timed(h200, "f16"));  // as bf16
  EXPECT_FALSE(is_timed(h200, "tf32"));
  EXPECT_NE(basis_text(h200, "tf32").find("tf32 at best, by the roofline"), std::string::npos);
  EXPECT_EQ(basis_text(h200, "bf16"), "by what nodes took on NVIDIA H200");
}

TEST(DeviceFormat, EveryFileThatIsShippedIsValid) {
  const std::vector<std::string> files =
      all_device_files({std::filesystem::path(VT_SOURCE_DIR) / "configs/devices"});
  EXPECT_GE(files.size(), 9u);
  for (const std::string& file : files) {
    const DeviceFile device = read_device_file(file);
    EXPECT_TRUE(device.is_measured() || !device.sheet.url.empty()) << file;
  }
}

}  // namespace
}  // namespace vitrail
