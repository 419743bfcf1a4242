// Device files at the ends of their ranges, what is told of a device, and times from its figures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "graph/builder.h"
#include "ops/linear.h"
#include "plan/device_file.h"
#include "plan/devices.h"
#include "plan/node_times.h"
#include "plan/target.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

using FileJson = nlohmann::json;

FileJson a_processor() {
  return FileJson::parse(R"({"format": "vitrail device 2", "kind": "cpu", "name": "desk", "source": "here",
      "memory_bytes": 17179869184, "watts": 65.5, "isa": "avx2", "cores": 8,
      "rates": [{"threads": 8, "fma_gflops": 400, "copy_gbps": 25},
                {"threads": 1, "fma_gflops": 100, "copy_gbps": 10}],
      "products": [{"m": 64, "n": 32, "k": 16, "threads": 1, "gflops": 80},
                   {"m": 64, "n": 32, "k": 16, "threads": 8, "gflops": 100, "dtype": "bf16"}]})");
}
FileJson a_gpu() {
  return FileJson::parse(R"({"format": "vitrail device 2", "kind": "cuda", "name": "G", "source": "a sheet",
      "compute": 86, "processors": 100, "memory_bytes": 8589934592, "l2_bytes": 50000000,
      "foreign_bytes": 1073741824, "copy_gbps": 600, "tflops": {"f32": 30, "bf16": 70}})");
}

// "" where the file is read, else why not.
std::string why_refused(const FileJson& json) {
  const TempFolder folder;
  try {
    read_device_file(folder.file("d.json", json.dump()));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.hint().find("vitrail bench calibrate --out FILE"), std::string::npos);
    return error.message();
  }
  return "";
}
DeviceFile device_from(const FileJson& json) {
  const TempFolder folder;
  return read_device_file(folder.file("d.json", json.dump()));
}

TEST(DeviceRanges, EndsAreAcceptedAndWhatLiesBeyondIsNot) {
  const struct {
    FileJson (*file)();
    const char* place;  // JSON pointer
    double least, below, most, above;
  } rows[] = {{a_processor, "/memory_bytes", 1 << 24, (1 << 24) - 1, 1e15, 1e15 + 2},
              {a_processor, "/watts", 0.1, 0.09, 1e5, 100001},
              {a_processor, "/rates/0/fma_gflops", 1e-3, 9e-4, 1e7, 10000001},
              {a_processor, "/rates/0/copy_gbps", 1e-2, 9e-3, 1e6, 1000001},
              {a_processor, "/rates/0/threads", 2, 0, 8, 9},
              {a_processor, "/products/0/threads", 1, 0, 8, 9},
              {a_processor, "/products/0/m", 1, 0, 1e18, 2e18},
              {a_processor, "/products/0/gflops", 1e-3, 9e-4, 1e7, 10000001},
              {a_processor, "/cores", 8, 7, 4096, 4097},
              {a_gpu, "/compute", 30, 29, 999, 1000},
              {a_gpu, "/processors", 1, 0, 65536, 65537},
              {a_gpu, "/l2_bytes", 1024, 1023, 1e12, 1e12 + 1},
              {a_gpu, "/foreign_bytes", 1, 0, 8589934591, 8589934592},
              {a_gpu, "/copy_gbps", 1e-2, 9e-3, 1e6, 1000001},
              {a_gpu, "/tflops/f32", 1e-3, 9e-4, 1e5, 100001}};
  for (const auto& row : rows)
    for (const auto& [value, accepted] :
         {std::pair{row.least, true}, {row.below, false}, {row.most, true}, {row.above, false}}) {
      FileJson json = row.file();
      const bool whole = value == std::floor(value);
      json[FileJson::json_pointer(row.place)] =
          whole ? FileJson(static_cast<int64_t>(value)) : FileJson(value);
      EXPECT_EQ(why_refused(json).empty(), accepted)
          << row.place << " " << value << ": " << why_refused(json);
    }
}

TEST(DeviceRanges, RefusalsNameTheMember) {
  const struct {
    FileJson (*file)();
    const char *place, *value, *says;
  } rows[] = {
      {a_processor, "/isa", "\"sse9\"", "'isa' is \"sse9\", none of "},
      {a_processor, "/rates/0/threads", "9", "'rates' has 9 threads, and there are 8 cores"},
      {a_processor, "/rates/0/threads", "1", "'rates' has two rows for 1 threads"},
      {a_processor, "/products/1/threads", "9", "'products' has 9 threads, and there are 8 cores"},
      {a_processor, "/products/0/dtype", "\"f8\"", "\"f8\" is no type that is computed in"},
      {a_processor, "/products/0/dtype", "\"int8\"", "'products' has none in f32"},
      {a_processor, "/products/0/speed", "3", "it has 'products.speed', which no device file has"},
      {a_processor, "/rates/0/speed", "3", "it has 'rates.speed', which no device file has"},
      {a_processor, "/rates", "[]", "'rates' is no list, or an empty one"},
      {a_processor, "/cores", "2.5", "'cores' is no whole number"},
      {a_processor, "/isa", "3", "'isa' is no text"},
      {a_processor, "/cores", "\"8\"", "'cores' is no number"},
      {a_processor, "/kind", "\"ref\"", "it describes a ref, and plans are for a cpu or cuda"},
      {a_gpu, "/tflops/int8", "3", "it has 'tflops.int8'"},
      {a_gpu, "/foreign_bytes", "8589934592", "'foreign_bytes' leaves no memory"},
      {a_gpu, "/curves",
       R"([{"kind": "", "kernel": "k", "type": "f32", "threads": 1, "points": [[1, 1, 1, 1, 1]]}])",
       "a curve has no kind"},
      {a_gpu, "/curves",
       R"([{"kind": "x", "kernel": "k", "type": "f32", "threads": 1, "points": [[1, 1, 1, 1]]}])",
       "a point of 'x' is not [FLOPs, bytes"},
      {a_gpu, "/curves",
       R"([{"kind": "x", "kernel": "k", "type": "f32", "threads": 1, "points": [[1, 1, 1, 1, 1e6]]}])",
       "a point of 'x' has 1000000.0"},
      {a_gpu, "/curves",
       R"([{"kind": "x", "kernel": "k", "type": "f32", "threads": 1, "points": [[0, 0, 0, 0, 1e5]]}])", ""}};
  for (const auto& row : rows) {
    FileJson json = row.file();
    json[FileJson::json_pointer(row.place)] = FileJson::parse(row.value);
    const std::string says = why_refused(json);
    EXPECT_NE(says.find(row.says), std::string::npos) << row.place << ": " << says;
    EXPECT_EQ(says.empty(), *row.says == '\0') << says;
  }
}

TEST(DeviceFileText, EveryMemberIsReadAndWrittenBack) {
  for (const auto make : {a_processor, a_gpu}) {
    FileJson json = make();
    const DeviceFile device = device_from(json);
    if (json.contains("rates")) {
      std::swap(json["rates"][0], json["rates"][1]);  // by threads
      json["products"][0]["dtype"] = "f32";           // the usual one
    }
    EXPECT_EQ(FileJson(to_json(device)), json);
    EXPECT_EQ(FileJson::parse(file_text(device)), json);
  }
  FileJson old = a_processor();
  old["format"] = "vitrail device 1", old.erase("source");
  EXPECT_EQ(device_from(old).source, "measured");
}

std::string one_blank_each(const std::string& text) {
  std::string words;
  for (const char c : text)
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  return words;
}

TEST(DeviceFileText, TellsTheFigures) {
  const std::string cpu = one_blank_each(to_text(device_from(a_processor()))),
                    gpu = one_blank_each(to_text(device_from(a_gpu())));
  for (const char* part : {"name desk\n", "instruction set avx2\n", "cores 8\n", "memory 16.0 GiB\n",
                           "curves none: times are at best those of the roofline\n",
                           "1 100.0 GFLOP/s 10.0 GB/s", "8 400.0 GFLOP/s 25.0 GB/s",
                           "64x32x16 f32 1 80.0 GFLOP/s 80.00 %", "64x32x16 bf16 8 100.0 GFLOP/s 25.00 %"})
    EXPECT_NE(cpu.find(part), std::string::npos) << part << "\n" << cpu;
  for (const char* part : {"name G\n", "source a sheet\n", "compute capability 8.6\n",
                           "multiprocessors 100\n", "memory 8.00 GiB\n", "foreign 1.00 GiB of the driver",
                           "copy 600 GB/s\n", "bf16 70.0 TFLOP/s", "f32 30.0 TFLOP/s"})
    EXPECT_NE(gpu.find(part), std::string::npos) << part << "\n" << gpu;
  FileJson measured = a_gpu();
  measured["curves"] = FileJson::parse(
      R"([{"kind": "x", "kernel": "k", "type": "f32", "threads": 1, "points": [[1, 1, 1, 1, 1], [2, 1, 1, 1, 1]]}])");
  EXPECT_NE(to_text(device_from(measured)).find("2 points in 1 curve\n"), std::string::npos);
  FileJson other = measured["curves"][0];
  other["kind"] = "y", other["points"].push_back({3, 1, 1, 1, 1});
  measured["curves"].push_back(other);
  EXPECT_NE(to_text(device_from(measured)).find("5 points in 2 curves\n"), std::string::npos);
}

TEST(DeviceFileText, RooflinesAndPeaksHaveTheirUnits) {
  const DeviceFile cpu = device_from(a_processor()), gpu = device_from(a_gpu());
  const Roofline one = cpu.roofline(1), eight = cpu.roofline(8), card = gpu.roofline(1);
  EXPECT_DOUBLE_EQ(one.bytes, 10e9);
  EXPECT_DOUBLE_EQ(one.flops.at("f32"), 80e9);
  EXPECT_DOUBLE_EQ(eight.flops.at("f32"), 320e9) << "80 % of the peak";
  EXPECT_DOUBLE_EQ(eight.flops.at("bf16"), 100e9);
  EXPECT_DOUBLE_EQ(card.bytes, 600e9);
  EXPECT_DOUBLE_EQ(card.flops.at("bf16"), 70e12);
  EXPECT_EQ(cpu.peak_gflops(8, "bf16"), 400);
  EXPECT_EQ(gpu.peak_gflops(1, "bf16"), 70e3);
  EXPECT_EQ(gpu.peak_gflops(1, "f16"), 30e3) << "f32 where it was not measured";
  const DeviceInfo info = gpu.info(0);
  EXPECT_EQ(info.memory_bytes, 8589934592u);
  EXPECT_EQ(info.l2_bytes, 50000000u);
  EXPECT_FALSE(info.shares_host_memory);
  EXPECT_EQ(cpu.info(0).threads, 8);
  EXPECT_EQ(cpu.info(3).threads, 3);
  EXPECT_EQ(cpu.info(3).memory_bytes, 17179869184u);
}

Program one_gemm(DType dtype) {
  Builder b;
  const ValueId x = b.input("x", {dtype, {{'B', 4}, {'D', 8}}});
  const ValueId y = b.add<LinearOp>({x, b.parameter("w", {dtype, {{'F', 16}, {'D', 8}}})}, "y");
  b.output("y", y);
  return b.finish();
}

TEST(NodeTimes, FollowTheRooflineWhereNothingWasMeasured) {
  const ExecutionPlan plan = plan_execution(one_gemm(DType::kF32), ref_backend(), cpu_device(1));
  DeviceFile device = device_from(a_processor());
  const double flops = 2 * 4 * 8 * 16, bytes = 4 * (4 * 8 + 16 * 8 + 4 * 16);
  ASSERT_EQ(node_seconds(plan, device).size(), 1u);
  EXPECT_DOUBLE_EQ(run_seconds(plan, device), std::max(flops / 80e9, bytes / 10e9));
  std::get<CpuSpec>(device.spec).rates[0].copy_gbps = 1e6;
  EXPECT_DOUBLE_EQ(run_seconds(plan, device), flops / 80e9) << "where memory is fast";
  const NodeSize size = size_of(plan, 0);
  EXPECT_EQ(size.flops, flops);
  EXPECT_EQ(size.bytes, bytes);
  EXPECT_EQ(size.first, 4 * 8);
  EXPECT_EQ(size.last, 4 * 16);
  const CostCurve curve = curve_of(plan, 0);
  EXPECT_EQ(curve.kind, "linear");
  EXPECT_EQ(curve.kernel, kernel_name(plan.choices[0]));
  EXPECT_EQ(curve.type, "f32");
  EXPECT_EQ(curve.threads, 1);
  // A curve that was measured leads, in f16 that of bf16.
  device.curves.add(curve, {size, 0.25});
  EXPECT_NEAR(run_seconds(plan, device), 0.25, 0.01);
  EXPECT_TRUE(is_timed(device, "f32"));
  EXPECT_FALSE(is_timed(device, "bf16"));
  EXPECT_EQ(basis_text(device, "f32"), "by what nodes took on desk");
  EXPECT_EQ(basis_text(device, "bf16"), "by what nodes took on desk; bf16 at best, by the roofline");
  // A type that was measured itself does not stand in for another.
  CostCurve half = curve, low = curve;
  half.type = "f16", low.type = "bf16";
  device.curves.add(low, {size, 0.5});
  const ExecutionPlan in_half = plan_execution(one_gemm(DType::kF16), ref_backend(), cpu_device(1));
  const NodeSize half_size = size_of(in_half, 0);
  EXPECT_GT(run_seconds(in_half, device), 0.25) << "as bf16";
  device.curves.add(half, {half_size, 0.125});
  EXPECT_NEAR(run_seconds(in_half, device), 0.125, 0.01);
  ASSERT_EQ(device.curves.curves().size(), 3u) << "a curve each, whatever the order they came in";
  EXPECT_EQ(device.curves.curves()[0].type, "bf16");
  const DeviceFile plain = device_from(a_processor());
  EXPECT_EQ(basis_text(plain, "f32"), "at best, by the roofline of desk");
}

TEST(NodeTimes, TypesOfUnknownSpeedAreNamed) {
  const Roofline device{{{"f32", 1e9}}, 1e12};
  EXPECT_EQ(unknown_text(unknown_types(one_gemm(DType::kBF16), device)),
            "; bf16 at the rate of f32: the device file has none of its own");
  EXPECT_EQ(unknown_text(unknown_types(one_gemm(DType::kF32), device)), "");
  EXPECT_EQ(unknown_text({"bf16", "f16"}),
            "; bf16, f16 at the rate of f32: the device file has none of its own");
  EXPECT_EQ(gemm_type(one_gemm(DType::kBF16)), "bf16");
  EXPECT_EQ(gemm_type(Program()), "f32");
  EXPECT_DOUBLE_EQ(estimate_seconds(one_gemm(DType::kBF16), device), 2 * 4 * 8 * 16 / 1e9);
}

TEST(FileTargetText, WhatWasNotMeasuredIsNamed) {
  const DeviceFile cpu = device_from(a_processor()), gpu = device_from(a_gpu());
  const auto says = [](const DeviceFile& file, int threads, const char* isa) {
    try {
      file_target(file, threads, isa);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(says(cpu, 9, ""), "--target has 8 cores, not the 9 of --threads");
  EXPECT_EQ(says(cpu, 8, "avx512"), "--target was measured with avx2, not with avx512");
  EXPECT_EQ(says(gpu, 0, "avx2"), "--target is a GPU and has no instruction set avx2");
  EXPECT_EQ(says(gpu, 999, ""), "");
  EXPECT_TRUE(file_target(cpu, 0, "").named);
  EXPECT_FALSE(resolve_target({.threads = 1, .isa = "avx2"}).named);
  EXPECT_GT(resolve_target({.threads = 1, .isa = "avx2"}).available_bytes, 0u);
  const TempFolder first, second;
  first.file("b.json"), first.file("c.txt"), second.file("a.json"), second.file("b.json");
  const std::vector<std::filesystem::path> places = {first.path(), second.path()};
  EXPECT_EQ(all_device_files(places), (std::vector<std::string>{(second.path() / "a.json").string(),
                                                                (first.path() / "b.json").string()}));
  EXPECT_EQ(named_device_files("all", places), all_device_files(places));
  EXPECT_EQ(
      named_device_files("b,a", places),
      (std::vector<std::string>{(first.path() / "b.json").string(), (second.path() / "a.json").string()}));
}

}  // namespace
}  // namespace vitrail
