// The device that each rank of a host gets.
#include "plan/devices.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "graph/builder.h"
#include "ops/linear.h"
#include "plan/kernel_choice.h"
#include "plan/largest_batch.h"

#include "base/cores.h"
#include "base/error.h"

namespace vitrail {
namespace {

TEST(DevicesOfRanks, CoresAreSharedOutAndEachHasOneAtLeast) {
  const auto threads = [](int asked, int sharing) {
    return device_of_rank("cpu", "cpu", asked, "", {.local = 0, .sharing = sharing}).threads;
  };
  const int all = threads(0, 1);
  EXPECT_EQ(threads(0, all), 1);
  EXPECT_EQ(threads(0, 1000), 1) << "more ranks than cores";
  EXPECT_EQ(threads(3, 1000), 3) << "as it was asked for";
}

// Four ranks that srun --cpus-per-task=2 has bound, two that share a socket, one that is bound to nothing.
TEST(DevicesOfRanks, OnlyRanksThatMayRunOnTheSameCoresShareThem) {
  const std::vector<std::vector<int>> bound = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const std::vector<std::vector<int>> sockets = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}, {3, 4}};
  const std::vector<std::vector<int>> unknown = {{0, 1}, {2, 3}, {}};
  for (size_t r = 0; r < bound.size(); ++r) EXPECT_EQ(ranks_on_cores_of(r, bound), 1) << r;
  EXPECT_EQ(ranks_on_cores_of(0, sockets), 3);
  EXPECT_EQ(ranks_on_cores_of(1, sockets), 2);
  EXPECT_EQ(ranks_on_cores_of(3, sockets), 4);
  EXPECT_EQ(ranks_on_cores_of(0, unknown), 2);
  EXPECT_EQ(ranks_on_cores_of(2, unknown), 3);
}

TEST(DevicesOfRanks, ABoundRankHasItsCoresAlone) {
  const auto threads = [](int sharing, int overlapping) {
    return device_of_rank("cpu", "cpu", 0, "", {.sharing = sharing, .overlapping = overlapping}).threads;
  };
  const auto all = static_cast<int>(allowed_cores().size());
  ASSERT_GT(all, 0);
  if (threads(1, 1) < all) GTEST_SKIP() << "a container's quota leaves less than the cores";
  EXPECT_EQ(threads(1, 1), all);
  EXPECT_EQ(threads(all, 1), all) << "as many ranks on the host, each on cores of its own";
  EXPECT_EQ(threads(8 * all, all), 1);
  EXPECT_EQ(threads(2 * all, 0), 1) << "bound to nothing";
}

TEST(DevicesOfRanks, TheNextRankOfAProcessSharesTheSameHost) {
  const HostRank next = HostRank{.local = 2, .sharing = 5, .overlapping = 3, .shares_gpus = true}.after(2);
  EXPECT_EQ(next.local, 4);
  EXPECT_EQ(next.sharing, 5);
  EXPECT_EQ(next.overlapping, 3);
  EXPECT_TRUE(next.shares_gpus);
}

TEST(DevicesOfRanks, ARankWithoutAGpuOfItsOwnIsRefusedUnlessTheyShare) {
  for (const int local : {0, 1, 2}) EXPECT_EQ(gpu_of({.local = local, .sharing = 5}, 3), local);
  for (const int local : {3, 4}) {
    try {
      gpu_of({.local = local, .sharing = 5}, 3);
      ADD_FAILURE() << local;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
      EXPECT_EQ(exit_code(error.kind()), 69);
      EXPECT_EQ(error.message(), strf("rank %d of this host wants GPU %d: this machine has 3", local, local));
      EXPECT_NE(error.hint().find("at most 3 ranks here"), std::string::npos) << error.hint();
    }
    EXPECT_EQ(gpu_of({.local = local, .sharing = 5, .shares_gpus = true}, 3), local - 3);
  }
  // A host without any is told by what opens the device.
  EXPECT_EQ(gpu_of({.local = 4, .sharing = 5}, 0), 4);
}

Program a_linear() {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', 4}, {'D', 8}}});
  b.output("y", b.add<LinearOp>({x, b.parameter("w", {DType::kF32, {{'F', 16}, {'D', 8}}})}, "y"));
  return b.finish();
}

TEST(LargestBatchText, SaysWhereTheSearchEnded) {
  EXPECT_EQ(largest_batch_text(65535), "65,535");
  EXPECT_EQ(largest_batch_text(65536), "65,536 or more");
  EXPECT_EQ(largest_batch_text(65528, 12), "65,528 or more");
  EXPECT_EQ(largest_batch_text(65524, 12), "65,524");
}

TEST(NamedDevice, SaysWhoseItIsAndWhichOne) {
  const NamedDevice second = named_device("cuda:1"), processor = named_device("cpu");
  EXPECT_EQ(second.backend, "cuda");
  EXPECT_EQ(second.ordinal, 1);
  EXPECT_FALSE(second.on_host);
  EXPECT_FALSE(second.tunes_sizes);
  EXPECT_EQ(processor.backend, "cpu");
  EXPECT_TRUE(processor.on_host);
  EXPECT_TRUE(processor.tunes_sizes);
  EXPECT_TRUE(names_devices("cuda"));
  EXPECT_TRUE(names_devices("cpu"));
  EXPECT_FALSE(names_devices("ref"));
}

TEST(NamedDevice, AnotherNameIsRefusedInTheWordsOfWhoAsked) {
  for (const char* option : {"device", "--device"}) try {
      named_device("tpu", option);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_TRUE(error.message().starts_with(std::string(option) + " expects")) << error.message();
    }
}

TEST(DeviceText, HasInstructionSetAndThreads) {
  const Program program = a_linear();
  const auto text = [&](const Backend& backend, const DeviceInfo& device) {
    return device_text(plan_execution(program, backend, device));
  };
  EXPECT_EQ(text(cpu_backend(), planned_cpu_device(2, "avx2")), "cpu (avx2, 2 threads)");
  EXPECT_EQ(text(cpu_backend(), planned_cpu_device(1, "avx2")), "cpu (avx2, 1 thread)");
  EXPECT_EQ(text(ref_backend(), planned_cpu_device(1, "avx2")), "ref (plain, 1 thread)");
  EXPECT_EQ(isa_name(planned_cpu_device(1, "avx2").isa), "avx2");
  for (const char* option : {"device", "--device"}) try {
      parse_device_name("tpu", option);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_TRUE(error.message().starts_with(std::string(option) + " expects")) << error.message();
    }
}

}  // namespace
}  // namespace vitrail
