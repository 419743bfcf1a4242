// Device files by name: where they are looked for, and what is said of a name that is none.
#include "plan/target.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/devices.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

TEST(DevicePath, AFileGoesBeforeANameAndTheFirstPlaceWins) {
  const TempFolder first, second;
  const std::string file = first.file("desk.json"), other = second.file("lab.json");
  second.file("desk.json");
  const std::vector<fs::path> places = {"/no/such/place", first.path(), second.path()};
  EXPECT_EQ(find_device_file("desk", places), file);
  EXPECT_EQ(find_device_file("lab", places), other);
  EXPECT_EQ(find_device_file(other, {}), other);
}

TEST(DevicePath, ANameThatIsNoneIsRefusedWithTheNearest) {
  const TempFolder folder;
  folder.file("desk.json");
  for (const auto& [name, says] : {std::pair<std::string, std::string>{"dask", "did you mean --target desk?"},
                                   {"something else", "one of desk, or a file of vitrail bench calibrate"}}) {
    try {
      find_device_file(name, {folder.path()});
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
      EXPECT_NE(error.hint().find(says), std::string::npos) << error.hint();
    }
  }
}

DeviceFile eight_cores() {
  DeviceFile file;
  file.name = "desk";
  file.memory_bytes = uint64_t{16} << 30;
  file.spec =
      CpuSpec{.isa = "avx2", .cores = 8, .rates = {{.threads = 1, .fma_gflops = 100, .copy_gbps = 10}}};
  return file;
}

// Memory is shared by all threads, so its rate is that of the nearest number; arithmetic grows with threads.
TEST(DeviceRate, IsScaledFromTheNearestNumberOfThreadsMeasured) {
  CpuSpec file = std::get<CpuSpec>(eight_cores().spec);
  file.rates.push_back({.threads = 4, .fma_gflops = 360, .copy_gbps = 30});
  EXPECT_EQ(file.rate(4).fma_gflops, 360);
  EXPECT_EQ(file.rate(8).fma_gflops, 720);
  EXPECT_EQ(file.rate(8).copy_gbps, 30);
  EXPECT_EQ(file.rate(2).fma_gflops, 200);
  EXPECT_EQ(file.rate(2).copy_gbps, 10);
  file.gemms = {{.threads = 1, .gflops = 50},
                {.threads = 4, .gflops = 252},
                {.threads = 4, .gflops = 324},
                {.threads = 4, .gflops = 720, .dtype = "bf16"}};
  EXPECT_DOUBLE_EQ(file.gemm_share(), 0.7) << "the median, each of the peak of its threads";
  EXPECT_DOUBLE_EQ(file.gemm_share("bf16"), 2);
  EXPECT_EQ(file.gemm_share("int8"), 0);
}

TEST(FileTarget, TellsWhatTheDriverHolds) {
  DeviceFile file;
  file.kind = "cuda", file.spec = GpuSpec{.compute = 90, .processors = 132};
  file.memory_bytes = 100, file.foreign_bytes = 30;
  const PlanTarget target = file_target(file, 64, "");
  EXPECT_EQ(target.available_bytes, 70u);
  EXPECT_EQ(target.foreign_bytes, 30u);
  EXPECT_TRUE(target.named);
}

TEST(ResolvedTarget, IsTheFileOrTheDeviceThatWasAskedFor) {
  const TempFolder folder;
  DeviceFile desk = eight_cores();
  std::get<CpuSpec>(desk.spec).gemms = {{.m = 1, .n = 1, .k = 1, .gflops = 50}};
  folder.file("desk.json", file_text(desk));
  const PlanTarget named = resolve_target({.file = "desk", .places = {folder.path()}, .threads = 3});
  EXPECT_TRUE(named.named);
  EXPECT_EQ(named.file->name, "desk");
  EXPECT_EQ(named.device.threads, 3);
  EXPECT_THROW(resolve_target({.file = "", .places = {folder.path()}}), Error) << "no name is no device";

  const PlanTarget here = resolve_target({.threads = 3, .isa = "avx2"});
  EXPECT_FALSE(here.named || here.file);
  EXPECT_EQ(here.device.threads, 3);
  EXPECT_EQ(isa_name(here.device.isa), "avx2");
  EXPECT_GT(here.available_bytes, 0u);
  EXPECT_EQ(here.foreign_bytes, 0u);
  EXPECT_THROW(resolve_target({.device = "ref"}), Error);
}

TEST(FileTarget, TakesAsManyThreadsAsThereAreCores) {
  EXPECT_EQ(file_target(eight_cores(), 8, "").device.threads, 8);
  EXPECT_EQ(file_target(eight_cores(), 0, "avx2").device.threads, 8) << "all of them";
  EXPECT_EQ(file_target(eight_cores(), 3, "").device.threads, 3);
  EXPECT_THROW(file_target(eight_cores(), 9, ""), Error);
  EXPECT_THROW(file_target(eight_cores(), 8, "avx512"), Error) << "other kernels than were measured";
}

}  // namespace
}  // namespace vitrail
