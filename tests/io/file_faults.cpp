#include "io/file_faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

namespace {

constexpr int kDied = 77, kThrew = 78;
bool refuses_exchange = false, holds_nfs_files = false;
long calls_left = 0;  // 0: nobody counts

void step() {
  if (calls_left > 0 && --calls_left == 0) ::_exit(kDied);
}

}  // namespace

extern "C" {

int rename(const char* from, const char* to) noexcept {
  step();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  step();
  if (refuses_exchange && flags != 0) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  step();
  if (holds_nfs_files && std::strncmp(path, ".nfs", 4) == 0) {
    errno = EBUSY;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}

int fsync(int fd) {
  step();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

}  // extern "C"

namespace vitrail::testing {

void refuse_exchange(bool refuse) {
  refuses_exchange = refuse;
}

void hold_nfs_files(bool hold) {
  holds_nfs_files = hold;
}

bool dies_at(long call, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    calls_left = call;
    try {
      body();
    } catch (const std::exception&) {
      ::_exit(kThrew);
    }
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != kThrew) << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == kDied;
}

}  // namespace vitrail::testing
