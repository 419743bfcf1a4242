#include "telemetry/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace vitrail {

namespace {
Error write_error(const char* action, const std::string& path, int code) {
  return {ErrorKind::kWrite,
          strf("cannot %s %s: %s", action, path.c_str(),
               std::error_code(code, std::generic_category()).message().c_str()),
          code == ENOSPC   ? "free some space"
          : code == ENOENT ? "create the folder first"
                           : ""};
}
}  // namespace

AppendFile::AppendFile(std::string path, WriteTrouble trouble)
    : path_(std::move(path)),
      trouble_(std::move(trouble)),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw write_error("open", path_, errno);
}

AppendFile::~AppendFile() {
  ::close(fd_);
}

bool AppendFile::append(std::string_view bytes) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return give_up(-1, errno);
  const long long length = S_ISREG(status.st_mode) ? status.st_size : -1;
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return give_up(length, errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

void AppendFile::sync() {
  // Pipes and some file systems cannot be flushed.
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) report(write_error("flush", path_, errno));
}

void AppendFile::report(const Error& error) {
  if (!std::exchange(reported_, true) && trouble_) trouble_(error);
}

// `length` is the file's size before the piece, -1 when it cannot be truncated.
bool AppendFile::give_up(long long length, int code) {
  Error error = write_error("write", path_, code);
  if (length >= 0 && ::ftruncate(fd_, static_cast<off_t>(length)) != 0)
    error.at("a part of the last piece stays in the file");
  report(error);
  return false;
}

}  // namespace vitrail
