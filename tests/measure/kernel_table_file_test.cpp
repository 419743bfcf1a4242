// Tables of tuned kernels as files: read back for the device they were made for, and for no other.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/cpu/host/levels.h"
#include "base/file.h"
#include "measure/kernel_table_file.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

TunedDevice gpu(const std::string& name, int compute, const std::string& cublas) {
  return {&find_entry("cuda"), name, compute, [cublas](const KernelTable&) {
            return std::map<std::string, std::string>{{"cublaslt", cublas}};
          }};
}
const TunedDevice kGpu = gpu("NVIDIA H200 (synthetic)", 90, "13.1.0");

// A table that puts `kernel` first for every GEMM of the model above: 5 tokens, width 192.
KernelTable table_for(const std::string& kernel) {
  KernelTable table;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{576, 192}, {192, 192}, {768, 192}, {192, 768}})
    table.set({{"linear", 5, n, k, 1, static_cast<int>(best_isa())}, {kernel}});
  return table;
}

TEST(Kernels, WhatIsNotOfThisMachineIsIgnoredWithANote) {
  const TempFolder folder;
  const std::string file = (folder.path() / "table.json").string();
  write_kernels(file, table_for("gemm that packs"));
  const nlohmann::json good = nlohmann::json::parse(read_file(file, 1 << 20));
  ASSERT_NE(read_kernels(file).table, nullptr) << read_kernels(file).note;
  const std::vector<std::pair<nlohmann::json, std::string>> changes = {
      {{{"processor", "Z80"}}, "Z80"},           {{{"vitrail", "0.0.1"}}, "0.0.1"},
      {{{"format", "other"}}, "format"},         {{{"rows", 3}}, "rows"},
      {{{"rows", {{{"op", "linear"}}}}}, "'m'"}, {{{"libraries", {{"onednn", "0.0"}}}}, "other versions"}};
  for (const auto& [change, part] : changes) {
    nlohmann::json bad = good;
    bad.update(change);
    const KernelsFile read = read_kernels(folder.file("bad.json", bad.dump()));
    EXPECT_EQ(read.table, nullptr) << part;
    EXPECT_NE(read.note.find(part), std::string::npos) << read.note;
  }
  for (const char* text : {"", "[1, 2", "null", "{}", "\xff"})
    EXPECT_EQ(read_kernels(folder.file("bad.json", text)).table, nullptr) << text;
  EXPECT_EQ(read_kernels((folder.path() / "nowhere.json").string()).table, nullptr);
}

TEST(GpuKernels, AreReadBackForTheSameGpuAndLibraryOnly) {
  const TempFolder folder;
  const std::string file = (folder.path() / "made/card.json").string();
  KernelTable table;
  table.set({{"linear+bias bf16", 197, 2304, 768, 0, 90}, {"cublaslt 3"}});
  table.set({{"linear_dw+accumulate bf16 to f32", 768, 768, 197, 0, 90}, {"cublaslt"}});
  write_kernels(file, table, kGpu);
  const KernelsFile read = read_kernels(file, kGpu);
  ASSERT_NE(read.table, nullptr) << read.note;
  EXPECT_EQ(read.table->hash(), table.hash());

  const auto note = [&](const std::string& path, const TunedDevice& device) {
    const KernelsFile other = read_kernels(path, device);
    EXPECT_EQ(other.table, nullptr);
    return other.note;
  };
  EXPECT_NE(note(file, gpu(kGpu.name, 90, "13.2.0")).find("13.1.0"), std::string::npos);
  EXPECT_NE(note(file, gpu("NVIDIA L4", 89, "13.1.0")).find("NVIDIA H200"), std::string::npos);
  EXPECT_NE(note(file, this_processor()).find("processor"), std::string::npos);

  auto json = nlohmann::json::parse(read_file(file, 1 << 20));
  EXPECT_FALSE(json["rows"][0].contains("threads"));
  json["vitrail"] = "0.0.1";  // its algorithms are the library's, so that a table outlives a release
  EXPECT_NE(read_kernels(folder.file("older.json", json.dump()), kGpu).table, nullptr);
  json["rows"][0]["m"] = 0;
  EXPECT_NE(note(folder.file("bad.json", json.dump()), kGpu).find("'m'"), std::string::npos);
}

TEST(GpuKernels, AreFoundByTheGpusName) {
  const TempFolder folder;
  EXPECT_EQ(own_kernels_path("/home/u/.config", kGpu),
            "/home/u/.config/vitrail/kernels-nvidia-h200-synthetic.json");
  EXPECT_EQ(own_kernels_path("", kGpu), "") << "there is no such folder";
  EXPECT_EQ(shipped_kernels_path(kGpu, {folder.path()}), "");
  const std::string file = folder.file("shipped/nvidia-h200-synthetic.json", "{}");
  const std::vector<std::filesystem::path> places = {folder.path(), folder.path() / "shipped"};
  EXPECT_EQ(shipped_kernels_path(kGpu, places), file);
  TunedDevice processor = this_processor();
  processor.name = kGpu.name;
  EXPECT_EQ(shipped_kernels_path(processor, places), "") << "a processor of that name";
}

}  // namespace
}  // namespace vitrail
