#include "io/file_faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

namespace {

constexpr int kDied = 77, kThrew = 78;
int exchange_error = 0, link_error = 0, file_flush_error = 0, folder_flush_error = 0;
bool holds_nfs_files = false;
std::optional<vitrail::testing::Room> told_room;
long calls_left = 0;  // 0: nobody counts

void step() {
  if (calls_left > 0 && --calls_left == 0) ::_exit(kDied);
}

int failed(int code) {
  errno = code;
  return -1;
}

bool is_folder(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

// The C library names its parameters otherwise.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

int rename(const char* from, const char* to) noexcept {
  step();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  step();
  if (exchange_error != 0 && flags != 0) return failed(exchange_error);
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  step();
  if (holds_nfs_files && std::strncmp(path, ".nfs", 4) == 0) return failed(EBUSY);
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}

int symlink(const char* target, const char* path) noexcept {
  if (link_error != 0) return failed(link_error);
  return static_cast<int>(::syscall(SYS_symlinkat, target, AT_FDCWD, path));
}

int statvfs(const char* path, struct statvfs* room) noexcept {
  struct statfs found {};
  if (::statfs(path, &found) != 0) return -1;
  *room = {};
  room->f_bsize = static_cast<unsigned long>(found.f_bsize);
  room->f_frsize = static_cast<unsigned long>(found.f_frsize != 0 ? found.f_frsize : found.f_bsize);
  room->f_blocks = told_room ? told_room->blocks : found.f_blocks;
  room->f_bfree = told_room ? told_room->free : found.f_bfree;
  room->f_bavail = told_room ? told_room->available : found.f_bavail;
  if (told_room) room->f_frsize = vitrail::testing::kRoomBlock;
  return 0;
}

int fsync(int fd) {
  step();
  if (file_flush_error != 0 || folder_flush_error != 0)
    if (const int code = is_folder(fd) ? folder_flush_error : file_flush_error; code != 0)
      return failed(code);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace vitrail::testing {

void refuse_exchange(int code) {
  exchange_error = code;
}

void refuse_links(int code) {
  link_error = code;
}

void refuse_flushes(int of_files, int of_folders) {
  file_flush_error = of_files;
  folder_flush_error = of_folders;
}

void tell_room(const std::optional<Room>& room) {
  told_room = room;
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
