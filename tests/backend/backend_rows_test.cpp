// Rows of the registry of backends: what its rows say of themselves agrees with what they are.
#include "backend/registry.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "backend/cpu/host/levels.h"
#include "backend/cpu/kernels.h"
#include "thrown.h"

namespace vitrail {
namespace {

TEST(BackendRows, RowsAgreeWithTheirKernelsAndDevices) {
  for (const BackendEntry& row : backend_registry()) {
    SCOPED_TRACE(row.name);
    EXPECT_STREQ(row.kernels().name(), row.name);
    EXPECT_EQ(&find_entry(row.name), &row);
    EXPECT_TRUE(find_entry(row.runs_on).names_devices());
    EXPECT_EQ(std::count(row.types.begin(), row.types.end(), "f32"), 1);
    const BackendReport report = row.report();
    EXPECT_EQ(report.problem.empty(), !report.devices.empty());
    const DeviceInfo planned = row.planned({.name = "planned", .memory_bytes = 1 << 30, .threads = 3});
    EXPECT_EQ(planned.backend, row.runs_on);
    EXPECT_EQ(planned.shares_host_memory, row.on_host);
    EXPECT_EQ(planned.memory_bytes, size_t{1} << 30);
    if (row.on_host) {
      EXPECT_EQ(planned.threads, 3);
    }
  }
}

TEST(BackendRows, OneIsTheHostsOwnAndOneTheReference) {
  EXPECT_TRUE(host_entry().on_host);
  EXPECT_TRUE(host_entry().names_devices());
  EXPECT_FALSE(host_entry().is_reference) << "what is compared with itself finds no fault";
  const std::vector<BackendEntry>& rows = backend_registry();
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const BackendEntry& row) { return row.is_reference; }),
            1);
  EXPECT_TRUE(find_entry("ref").is_reference);
}

// What options go by: the same processor by two backends, of which one has kernels for its instructions.
TEST(BackendRows, WhatTheRowsSay) {
  const struct {
    const char *name, *runs_on;
    bool numbered, on_host, is_reference, by_isa;
    std::vector<std::string> types;
  } wanted[] = {{"ref", "cpu", false, true, true, false, {"f32", "bf16", "int8", "fp8", "tf32"}},
                {"cpu", "cpu", false, true, false, true, {"f32", "bf16", "int8"}}};
  for (const auto& row : wanted) {
    const BackendEntry& found = find_entry(row.name);
    EXPECT_STREQ(found.runs_on, row.runs_on);
    EXPECT_EQ(found.numbered, row.numbered) << row.name;
    EXPECT_EQ(found.on_host, row.on_host) << row.name;
    EXPECT_EQ(found.is_reference, row.is_reference) << row.name;
    EXPECT_EQ(found.by_isa, row.by_isa) << row.name;
    EXPECT_EQ(found.types, row.types) << row.name;
  }
  const BackendEntry& cuda = find_entry("cuda");
  EXPECT_TRUE(cuda.numbered && cuda.names_devices());
  EXPECT_FALSE(cuda.on_host || cuda.is_reference || cuda.by_isa);
  EXPECT_EQ(find_entry("ref").report().note, "plain loops, the oracle");
  EXPECT_EQ(find_entry("cpu").report().note, "the fast one on processors");
}

// The reference rounds to some of the types that a processor lacks; others are types of files alone.
TEST(BackendRows, AProcessorSaysWhoComputesTheTypesItLacks) {
  const std::pair<const char*, const char*> rows[] = {{"fp8", "--backend ref computes it anywhere, slowly"},
                                                      {"tf32", "--backend ref computes it anywhere, slowly"},
                                                      {"f16", "weights stored as f16 are read as they are"}};
  for (const auto& [type, otherwise] : rows) {
    const UnsupportedType said = find_entry("cpu").unsupported(type, "--");
    EXPECT_EQ(said.message, strf("--dtype %s needs --device cuda", type));
    EXPECT_EQ(said.hint, strf("--dtype bf16 or int8 on the CPU; %s", otherwise));
  }
}

TEST(BackendRows, AProcessorsCopiesAreMeasuredWhereTheyAreAskedFor) {
  const BackendEntry& cpu = find_entry("cpu");
  const DeviceInfo one = cpu_device(1);
  const std::unique_ptr<Device> device = cpu.open(one);
  const DevicePeaks without = cpu.measure(one, *device, "f32", false);
  EXPECT_GT(without.gflops, 0);
  EXPECT_EQ(without.gbps, 0);
  EXPECT_GT(cpu.measure(one, *device, "f32", true).gbps, 0);
}

// Linux lists what the processor has and the system enables; a process asks for the data of tiles.
TEST(BackendRows, InstructionSetsAreThoseThatLinuxLists) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) continue;
  if (!line.starts_with("flags")) GTEST_SKIP() << "no list of this processor's instructions";
  std::istringstream words(line.substr(line.find(':') + 1));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return flags.contains(name); });
  };
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  std::vector<std::string> wanted = {"baseline"};
  const bool avx2 = all({"avx2", "fma"});
  const bool avx512 = avx2 && all({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  const bool vnni = avx512 && all({"avx512_vnni", "avx512_bf16"});
  const bool amx = vnni && all({"amx_tile", "amx_bf16", "amx_int8"}) &&
                   ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  if (avx2) wanted.emplace_back("avx2");
  if (avx512) wanted.emplace_back("avx512");
  if (vnni) wanted.emplace_back("vnni");
  if (amx) wanted.emplace_back("amx");
  std::vector<std::string> found;
  for (const IsaLevel level : available_isa_levels()) found.emplace_back(to_string(level));
  EXPECT_EQ(found, wanted);
  std::string known;
  for (const std::string& name : wanted) known += (known.empty() ? "" : ", ") + name;
  EXPECT_EQ(thrown_by([] { cpu_device(1, "neon"); }),
            "usage: this processor has no instruction set 'neon' | one of " + known);
  EXPECT_EQ(thrown_by([] { planned_cpu_device(1, "neon"); }),
            "usage: this build has no instruction set 'neon' | one of baseline, avx2, avx512, vnni, amx");
  EXPECT_EQ(to_string(static_cast<IsaLevel>(cpu_device(1).isa)), wanted.back()) << "the best one";
}

TEST(BackendRows, ADevicePlannedHasWhatTheFileSays) {
  const DeviceInfo gpu = find_entry("cuda").planned(
      {.name = "G", .memory_bytes = 5, .compute = 90, .processors = 7, .l2_bytes = 11});
  EXPECT_EQ(gpu.name, "G");
  EXPECT_EQ(gpu.compute, 90);
  EXPECT_EQ(gpu.processors, 7);
  EXPECT_EQ(gpu.l2_bytes, 11u);
}

// --backend ref computes on the processor; a GPU has kernels of its own, whatever --backend says.
TEST(BackendRows, TheKernelsOnADeviceAreThoseOfABackendThatRunsThere) {
  const auto on = [](const char* device, const char* backend) {
    return std::string(entry_on(parse_device_name(device), backend).name);
  };
  EXPECT_EQ(on("cpu", "cpu"), "cpu");
  EXPECT_EQ(on("cpu", "ref"), "ref");
  EXPECT_EQ(on("cuda:1", "cpu"), "cuda");
  EXPECT_EQ(on("cuda:1", "ref"), "cuda");
  EXPECT_EQ(on("cuda", "cuda"), "cuda");
}

TEST(KernelTableNames, KernelsOfAnyRow) {
  KernelTable table;
  EXPECT_FALSE(table.names("packed gemm"));
  table.set({{"linear", 1, 2, 3}, {"packed gemm", "onednn tiles"}});
  EXPECT_TRUE(table.names("onednn tiles"));
  EXPECT_FALSE(table.names("onednn"));
}

}  // namespace
}  // namespace vitrail
