// Free memory, from a fake /proc and /sys.
#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace vitrail {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class FreeMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrail-free-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    file("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1024 kB\nMemAvailable:    8388608 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  void expect(size_t mebibytes, const std::string& where) const {
    const FreeMemory free = free_memory(root_);
    EXPECT_EQ(free.bytes, mebibytes * kMiB);
    EXPECT_NE(free.where.find(where), std::string::npos) << free.where;
  }
  std::string root_;
};

TEST_F(FreeMemoryTest, OfTheMachineWithItsSwap) {
  expect(8192, "free on this machine");
  file("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 1048576 kB\nSwapFree: 1048576 kB\n");
  expect(2048, "free on this machine");
  file("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3145728 kB\nSwapFree: 8388608 kB\n");
  expect(4096, "free on this machine");
}

TEST_F(FreeMemoryTest, TheTightestGroupAboveTheProcess) {
  file("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  file("sys/fs/cgroup/slurm/memory.max", "max\n");
  file("sys/fs/cgroup/slurm/job_7/memory.max", "1073741824\n");
  file("sys/fs/cgroup/slurm/job_7/memory.current", "805306368\n");
  file("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "4294967296\n");
  expect(256, "control group /slurm/job_7");
  // Its file cache is reclaimed when memory is needed.
  file("sys/fs/cgroup/slurm/job_7/memory.stat",
       "anon 268435456\nactive_file 268435456\ninactive_file 268435456\nshmem 0\n");
  expect(768, "control group /slurm/job_7");
}

TEST_F(FreeMemoryTest, AContainerIsTheRootOfItsOwnTree) {
  file("proc/self/cgroup", "0::/\n");
  file("sys/fs/cgroup/memory.max", "2147483648\n");
  file("sys/fs/cgroup/memory.current", "1073741824\n");
  expect(1024, "control group /");
  // The group's name outside of the container: such a folder does not exist in here.
  file("proc/self/cgroup", "0::/docker/0123456789ab\n");
  expect(1024, "control group /");
}

TEST_F(FreeMemoryTest, TheFirstVersionOfGroups) {
  file("proc/self/cgroup", "12:cpu,cpuacct:/other\n5:memory:/job\n0::/\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912\n");
  file("sys/fs/cgroup/memory/job/memory.stat", "cache 1\ntotal_inactive_file 134217728\n");
  expect(640, "control group /job");
}

TEST_F(FreeMemoryTest, LimitsOfTheProcessItself) {
  file("proc/self/limits",
       "Limit                     Soft Limit           Hard Limit           Units\n"
       "Max data size             unlimited            unlimited            bytes\n"
       "Max address space         1073741824           unlimited            bytes\n");
  file("proc/self/status", "Name:\tvitrail\nVmSize:\t  262144 kB\nVmData:\t 100 kB\n");
  expect(768, "ulimit -v");
}

TEST_F(FreeMemoryTest, ALimitThatIsUsedUpIsNotUnknown) {
  file("proc/self/cgroup", "0::/\n");
  file("sys/fs/cgroup/memory.max", "1048576\n");
  file("sys/fs/cgroup/memory.current", "2097152\n");
  EXPECT_EQ(free_memory(root_).bytes, 1u);
  EXPECT_EQ(free_memory(root_ + "/nothing").bytes, 0u) << "nothing is known";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map more than any limit
TEST(FreeMemory, ThisProcessSeesItsOwnLimit) {
  const FreeMemory before = free_memory();
  EXPECT_GT(before.bytes, 0u);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{size_t{1} << 33, size_t{1} << 33};
    ::setrlimit(RLIMIT_AS, &limit);
    const FreeMemory free = free_memory();
    const bool named = free.bytes < before.bytes && free.where.find("ulimit -v") != std::string::npos;
    const bool machine = free.bytes == before.bytes || free.where == before.where;  // it had less anyway
    ::_exit(free.bytes < (size_t{1} << 33) && (named || machine) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(FreeMemory, ARanksShareIsCalledAShare) {
  const FreeMemory free{3000, "left under a limit"}, share = free.shared_by(999);
  EXPECT_EQ(share.bytes, 3u);
  EXPECT_EQ(share.where, "the share of one of 999 ranks in what is left under a limit");
  EXPECT_NE(share.advice().find("fewer ranks"), std::string::npos);
  EXPECT_EQ(free.shared_by(4000).bytes, 1u) << "0 would be unknown";
  EXPECT_EQ(free.shared_by(1).where, free.where);
  EXPECT_EQ(free.advice(), "");
  EXPECT_EQ(FreeMemory().shared_by(4).where, FreeMemory().where) << "of what is not known there is no share";
}

TEST(FreeMemory, RefusalsSayWhatBinds) {
  EXPECT_NO_THROW(require_free_memory(1, "a byte"));
  try {
    require_free_memory(size_t{1} << 60, "the moon");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_NE(error.message().find("the moon needs"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(free_memory().where), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace vitrail
