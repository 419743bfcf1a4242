#include "base/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/half_written.h"
#include "base/text.h"
#include "base/write_error.h"

namespace vitrail {

namespace {

// The kernel transfers at most about 2 GiB a call; a smaller step keeps calls interruptible.
constexpr size_t kLargestTransfer = size_t{1} << 30;

std::string errno_text(int code) {
  return std::error_code(code, std::generic_category()).message();
}

[[noreturn]] void cannot_read(const std::string& path, int code) {
  throw Error(ErrorKind::kData, strf("cannot read %s: %s", path.c_str(), errno_text(code).c_str()),
              code == ENOENT ? "check the path" : "");
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto uninterrupted(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

int open_for_reading(const std::string& path, int flags) {
  require_path(path, ErrorKind::kData);
  const int fd = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
  if (fd < 0) cannot_read(path, errno);
  return fd;
}

const char* kind_of_file(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

[[noreturn]] void refuse_kind(const std::string& path, const struct stat& status) {
  throw Error(ErrorKind::kData,
              strf("%s is %s, expected a regular file", path.c_str(), kind_of_file(status.st_mode)),
              "copy what it gives into a file first");
}

// Returns whether this is an unnamed pipe: it can only be reached through an inherited descriptor, as with
// the shell's <(command), so some process holds its other end.
bool is_nameless_pipe(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

// Clears O_NONBLOCK once the descriptor is open.
void wait_for_bytes(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

std::string read_all(int fd, const std::string& name, size_t max_bytes) {
  std::string content;
  for (;;) {
    const size_t before = content.size();
    const size_t step = std::min(std::max<size_t>(before, 64 << 10), max_bytes - before + 1);
    content.resize(before + step);
    const ssize_t got = uninterrupted([&] { return ::read(fd, content.data() + before, step); });
    if (got < 0) cannot_read(name, errno);
    content.resize(before + static_cast<size_t>(got));
    VT_REQUIRE(content.size() <= max_bytes, ErrorKind::kData, "%s is larger than the %zu bytes allowed here",
               name.c_str(), max_bytes);
    if (got == 0) return content;
  }
}

// Resolves `path` when it is a symbolic link, through links to links. Links that the kernel provides for
// descriptors (/dev/stdout) are kept: their target need not be a path. Throws Error(kWrite) where a NUL would
// end it.
std::string without_links(std::string path) {
  constexpr int kMostLinks = 40;  // the kernel's own limit
  require_path(path, ErrorKind::kWrite);
  std::error_code failed;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, failed); ++i) {
    const std::filesystem::path link(path),
        folder = std::filesystem::canonical(std::filesystem::absolute(link).parent_path(), failed);
    if (failed || folder.native().starts_with("/proc/")) break;
    const std::filesystem::path target = std::filesystem::read_symlink(link, failed);
    if (failed) break;
    path = (folder / target).string();
  }
  return path;
}

[[noreturn]] void cannot_write_stream(const std::string& path, mode_t mode, int code) {
  const std::string why = S_ISBLK(mode)   ? "a disk would lose what it holds"
                          : code == ENXIO ? "nobody reads from it"
                                          : errno_text(code);
  throw Error(ErrorKind::kWrite,
              strf("cannot write to %s, which is %s: %s", path.c_str(), kind_of_file(mode), why.c_str()),
              S_ISFIFO(mode) ? "start the program that reads it first" : "give the path of a file");
}

[[noreturn]] void refuse_folder(const std::string& path) {
  throw Error(ErrorKind::kWrite, path + " is a folder, and a file is to be written there",
              strf("name a file in it: %s%sNAME", path.c_str(), path.ends_with('/') ? "" : "/"));
}

// Opens a device, a pipe or an inherited descriptor, to which bytes are written directly; returns -1 for a
// regular file or a path that does not exist yet. A pipe without a reader is an error at once.
int open_stream(const std::string& path) {
  struct stat status {};
  std::error_code ignored;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (path.ends_with('/') || (exists && S_ISDIR(status.st_mode))) refuse_folder(path);
  if (!exists) return -1;
  if (S_ISREG(status.st_mode) && !std::filesystem::is_symlink(path, ignored)) return -1;
  if (S_ISBLK(status.st_mode)) cannot_write_stream(path, status.st_mode, 0);
  const int flags = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
  const int fd = uninterrupted([&] { return ::open(path.c_str(), flags); });
  if (fd < 0) cannot_write_stream(path, status.st_mode, errno);
  wait_for_bytes(fd);
  return fd;
}

struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

void require_path(const std::string& path, ErrorKind kind) {
  VT_REQUIRE(path.find('\0') == std::string::npos, kind, "expected a path, found %s: a NUL ends a path",
             quoted(path).c_str());
}

std::string read_file(const std::string& path, size_t max_bytes) {
  // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
  const Descriptor file{open_for_reading(path, O_NONBLOCK)};
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) cannot_read(path, errno);
  if (S_ISDIR(status.st_mode)) cannot_read(path, EISDIR);
  if (is_nameless_pipe(file.fd))
    wait_for_bytes(file.fd);
  else if (!S_ISREG(status.st_mode))
    refuse_kind(path, status);
  return read_all(file.fd, path, max_bytes);
}

std::string read_standard_input(size_t max_bytes) {
  return read_all(STDIN_FILENO, "the standard input", max_bytes);
}

void ByteSource::read_at(uint64_t offset, std::span<std::byte> target) const {
  VT_REQUIRE(offset <= size_ && target.size() <= size_ - offset, ErrorKind::kData,
             "%s: cut short: %zu bytes wanted at byte %llu, the file has %llu", name_.c_str(), target.size(),
             static_cast<unsigned long long>(offset), static_cast<unsigned long long>(size_));
  if (!target.empty()) read_checked(offset, target);
}

RandomAccessFile::RandomAccessFile(const std::string& path)
    // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
    : fd_(open_for_reading(path, O_NONBLOCK)) {
  name_ = path;
  struct stat status {};
  const int result = ::fstat(fd_, &status);
  const int code = errno;
  if (result == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  ::close(fd_);
  if (result != 0) cannot_read(path, code);
  refuse_kind(path, status);
}

RandomAccessFile::~RandomAccessFile() {
  ::close(fd_);
}

void RandomAccessFile::read_checked(uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const size_t step = std::min(target.size(), kLargestTransfer);
    const ssize_t got =
        uninterrupted([&] { return ::pread(fd_, target.data(), step, static_cast<off_t>(offset)); });
    if (got < 0) cannot_read(name_, errno);
    VT_REQUIRE(got > 0, ErrorKind::kData, "%s became shorter while it was read", name_.c_str());
    offset += static_cast<uint64_t>(got);
    target = target.subspan(static_cast<size_t>(got));
  }
}

MemoryBytes::MemoryBytes(std::string name, std::string content) : content_(std::move(content)) {
  name_ = std::move(name);
  size_ = content_.size();
}

void MemoryBytes::read_checked(uint64_t offset, std::span<std::byte> target) const {
  std::memcpy(target.data(), content_.data() + offset, target.size());
}

AtomicFile::AtomicFile(std::string path, bool tidies)
    : path_(without_links(std::move(path))), fd_(open_stream(path_)) {
  if (fd_ >= 0) return;
  if (tidies) remove_abandoned(path_);
  open_temporary();
}

void AtomicFile::open_temporary() {
  const std::filesystem::path target(path_);
  folder_ = target.has_parent_path() ? target.parent_path().string() : ".";
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = folder_ + "/" + half_written_name(target.filename().string());
    fd_ = uninterrupted(
        [&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  if (fd_ < 0) fail("create");
  hold_half_written(fd_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* action) const {
  cannot_write(action, path_, errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  VT_CHECK(fd_ >= 0, "write after commit");
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kLargestTransfer);
    const ssize_t put = uninterrupted([&] { return ::write(fd_, bytes.data(), step); });
    if (put < 0) fail("write");
    position_ += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void AtomicFile::write(std::string_view text) {
  write(as_byte_span(text));
}

void AtomicFile::commit() {
  VT_CHECK(fd_ >= 0, "committed twice");
  if (temporary_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail("close");
    return;
  }
  if (::fsync(fd_) != 0) fail("flush");
  // The descriptor is gone even when close reports an error.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put in place");
  temporary_.clear();
  const int folder =
      uninterrupted([&] { return ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0) fail("open the folder of");
  const Descriptor closer{folder};
  // Some file systems cannot flush a folder; the file itself is durable already.
  if (::fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP) fail("flush the folder of");
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path, false);
  file.write(content);
  file.commit();
}

}  // namespace vitrail
