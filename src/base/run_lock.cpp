#include "base/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/process_mark.h"
#include "base/run_files.h"

namespace vitrail {

namespace {

constexpr size_t kMaxLockBytes = 4096;

[[noreturn]] void cannot(const char* action, const std::string& path) {
  const int code = errno;
  throw Error(ErrorKind::kWrite,
              strf("cannot %s %s: %s", action, path.c_str(), std::generic_category().message(code).c_str()),
              code == ENOENT ? "create the folder first" : "choose a folder that can be written, with --out");
}

struct Owner {
  ProcessMark mark;
  std::string since;
};

std::string describe(const Owner& owner) {
  return strf("process %lld on %s, started %s", static_cast<long long>(owner.mark.pid),
              owner.mark.host.c_str(), owner.since.c_str());
}

// Reads the owner from the lock file; nothing when it is empty or its writer died while writing it.
std::optional<Owner> read_owner(int fd) {
  std::string text(kMaxLockBytes, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  try {
    const Json json = parse_json(text, RunFiles::kLock);
    const auto mark = ProcessMark::parse(json.at("process").get<std::string>());
    if (mark) return Owner{*mark, json.at("since").get<std::string>().substr(0, 32)};
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

void write_owner(int fd, const std::string& path) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char since[32];
  std::strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &utc);
  const std::string text = Json{{"process", ProcessMark::current().text()}, {"since", since}}.dump(2) + "\n";
  if (::ftruncate(fd, 0) != 0) cannot("write", path);
  if (::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) cannot("write", path);
}

[[noreturn]] void refuse(const std::string& path, const std::optional<Owner>& owner, bool certain) {
  throw Error(ErrorKind::kWrite,
              strf("another run uses this folder: %s is held by %s", path.c_str(),
                   owner ? describe(*owner).c_str() : "a process that has not yet written its name"),
              certain ? "wait for it, stop it, or choose another folder with --out"
                      : "if that run is no more, delete the lock file; otherwise choose another folder");
}

bool still_named(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

// A run replaces and extends files of its folder: links among them would make it write somewhere else, as in
// a folder that came from a stranger. Folders may be links: checkpoints on another disk.
void refuse_links(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code unknown;
    if (!it->is_symlink(unknown) || it->is_directory(unknown)) continue;
    throw Error(ErrorKind::kWrite,
                strf("%s is a link; a run writes to files of its own folder only", it->path().c_str()),
                "remove the link, or choose another folder with --out");
  }
}

}  // namespace

RunLock::RunLock(const std::string& folder) : path_(RunFiles(folder).lock()) {
  refuse_links(folder);
  // The owner may delete the file between our opening and locking it, so a failed attempt is repeated.
  for (int attempt = 0; attempt < 100; ++attempt)
    if (try_take()) return;
  errno = EBUSY;
  cannot("lock", path_);
}

bool RunLock::try_take() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool created = fd_ >= 0;
  if (!created && errno == EEXIST) fd_ = ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0 && errno == ENOENT && ::access(path_.substr(0, path_.rfind('/')).c_str(), F_OK) == 0)
    return false;
  if (fd_ < 0) cannot("create", path_);
  try {
    const bool locked = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const bool held = !locked && errno == EWOULDBLOCK;
    const std::optional<Owner> owner = read_owner(fd_);
    if (held) refuse(path_, owner, true);
    if (!still_named(fd_, path_)) {
      ::close(std::exchange(fd_, -1));
      return false;
    }
    // Where a file system cannot lock, creating the file is the lock, and only a dead owner loses it.
    if (!locked && !created && (!owner || !owner->mark.surely_dead())) refuse(path_, owner, false);
    write_owner(fd_, path_);
    certain_ = locked;
    if (owner) note_ = strf("took over %s, abandoned by %s", path_.c_str(), describe(*owner).c_str());
  } catch (...) {
    ::close(std::exchange(fd_, -1));
    throw;
  }
  return true;
}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace vitrail
