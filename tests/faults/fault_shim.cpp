// Loaded before a program with LD_PRELOAD: watches its system calls on files below one folder, counts them
// by class, and at a chosen one kills the program or lets the call fail. Can also write down every call.
//
// FAULT_ROOT    watched folder                   FAULT_CLASS   open write fsync close rename mkdir symlink
// FAULT_AT      which call of the class, from 1                unlink, or any; or read, which any leaves out
// FAULT_FOR     how many from there on; 1
// FAULT_COUNT   file for the count of calls      FAULT_ACTION  kill, torn (half a write, then kill), short
// FAULT_LOG     file for the calls themselves                  (half a write), or an errno as a number
// FAULT_NO_SWAP set: folders cannot be swapped, as on NFS
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fault_watch.h"

namespace {

using namespace fault;

int watch(int fd, const std::string& path, int flags, bool existed) {
  if (fd < 0 || fd >= kMaxFd) return fd;
  state().fds[fd] = {path, (flags & O_CREAT) != 0};
  if ((flags & O_CREAT) != 0 && !existed) note("create\t" + path);
  return fd;
}

int open_watched(int folder, const char* path, int flags, mode_t mode) {
  static auto* real = next<int(int, const char*, int, ...)>("openat");
  const std::string full = full_path(folder, path);
  if (!is_watched(full)) {
    const int fd = real(folder, path, flags, mode);
    if (fd >= 0 && fd < kMaxFd) state().fds[fd] = {};
    return fd;
  }
  if ((flags & O_CREAT) != 0 && fails("open")) return -1;
  struct stat status;
  const bool existed = ::stat(full.c_str(), &status) == 0;
  return watch(real(folder, path, flags, mode), full, flags, existed);
}

mode_t mode_of(int flags, va_list args) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(args, int)) : 0;
}

[[gnu::destructor]] void report() {
  if (!state().count_file) return;
  const int fd =
      next<int(const char*, int, ...)>("open")(state().count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const std::string text = std::to_string(state().count);
  raw_write(fd, text.data(), text.size());
}

}  // namespace

// The C library names its parameters otherwise.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return open_watched(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return open_watched(folder, path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char* path, int flags, ...) __attribute__((alias("openat")));

ssize_t write(int fd, const void* data, size_t size) {
  static auto* real = next<ssize_t(int, const void*, size_t)>("write");
  if (fd == STDOUT_FILENO) note("say\t" + std::to_string(size), data, size);
  const Watched* file = watched_fd(fd);
  if (!file) return real(fd, data, size);
  if (chosen("write")) {
    const std::string& action = state().action;
    if (action != "torn" && action != "short") {
      errno = std::atoi(action.c_str());
      return -1;
    }
    if (size > 1) size /= 2;
    if (action == "torn") {
      real(fd, data, size);
      ::raise(SIGKILL);
    }
  }
  const off_t offset = ::lseek(fd, 0, SEEK_CUR);
  const ssize_t put = real(fd, data, size);
  if (put > 0)
    note("write\t" + file->path + "\t" + std::to_string(offset) + "\t" + std::to_string(put), data,
         static_cast<size_t>(put));
  return put;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  static auto* real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const Watched* file = watched_fd(fd);
  if (!file) return real(fd, data, size, offset);
  if (fails("write")) return -1;
  const ssize_t put = real(fd, data, size, offset);
  if (put > 0)
    note("write\t" + file->path + "\t" + std::to_string(offset) + "\t" + std::to_string(put), data,
         static_cast<size_t>(put));
  return put;
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  static auto* real = next<ssize_t(int, void*, size_t, off_t)>("pread");
  return watched_fd(fd) && fails("read") ? -1 : real(fd, data, size, offset);
}

ssize_t read(int fd, void* data, size_t size) {
  static auto* real = next<ssize_t(int, void*, size_t)>("read");
  return watched_fd(fd) && fails("read") ? -1 : real(fd, data, size);
}

int ftruncate(int fd, off_t size) {
  static auto* real = next<int(int, off_t)>("ftruncate");
  const Watched* file = watched_fd(fd);
  return file ? on_path("write", file->path, "truncate\t" + file->path + "\t" + std::to_string(size),
                        [&] { return real(fd, size); })
              : real(fd, size);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off_t offset) __attribute__((alias("pwrite")));
ssize_t pread64(int fd, void* data, size_t size, off_t offset) __attribute__((alias("pread")));
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));

int fsync(int fd) {
  static auto* real = next<int(int)>("fsync");
  const Watched* file = watched_fd(fd);
  return file ? on_path("fsync", file->path, "sync\t" + file->path, [&] { return real(fd); }) : real(fd);
}

int fdatasync(int fd) {
  static auto* real = next<int(int)>("fdatasync");
  const Watched* file = watched_fd(fd);
  return file ? on_path("fsync", file->path, "sync\t" + file->path, [&] { return real(fd); }) : real(fd);
}

int close(int fd) {
  static auto* real = next<int(int)>("close");
  Watched* file = watched_fd(fd);
  if (!file) return real(fd);
  const bool failing = file->created && fails("close");
  const int code = errno;
  *file = {};
  const int result = real(fd);  // the descriptor goes even when close reports an error
  if (!failing) return result;
  errno = code;
  return -1;
}

int rename(const char* from, const char* to) {
  static auto* real = next<int(const char*, const char*)>("rename");
  return on_path("rename", to, std::string("rename\t") + from + "\t" + to, [&] { return real(from, to); });
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  static auto* real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  if (is_watched(to) && *setting("FAULT_NO_SWAP")) {
    errno = EINVAL;
    return -1;
  }
  return on_path("rename", to, std::string("exchange\t") + from + "\t" + to,
                 [&] { return real(from_folder, from, to_folder, to, flags); });
}

int mkdir(const char* path, mode_t mode) {
  static auto* real = next<int(const char*, mode_t)>("mkdir");
  return on_path("mkdir", path, std::string("mkdir\t") + path, [&] { return real(path, mode); });
}

int symlink(const char* target, const char* path) {
  static auto* real = next<int(const char*, const char*)>("symlink");
  return on_path("symlink", path, std::string("symlink\t") + target + "\t" + path,
                 [&] { return real(target, path); });
}

int unlink(const char* path) {
  static auto* real = next<int(const char*)>("unlink");
  return on_path("unlink", path, std::string("remove\t") + path, [&] { return real(path); });
}

int rmdir(const char* path) {
  static auto* real = next<int(const char*)>("rmdir");
  return on_path("unlink", path, std::string("remove\t") + path, [&] { return real(path); });
}

int remove(const char* path) {
  static auto* real = next<int(const char*)>("remove");
  return on_path("unlink", path, std::string("remove\t") + path, [&] { return real(path); });
}

int unlinkat(int folder, const char* name, int flags) {
  static auto* real = next<int(int, const char*, int)>("unlinkat");
  const std::string path = full_path(folder, name);
  return on_path("unlink", path, "remove\t" + path, [&] { return real(folder, name, flags); });
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
