// Rows of the registry of backends: what its rows say of themselves agrees with what they are.
#include "backend/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

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
