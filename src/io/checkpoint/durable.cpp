#include "io/checkpoint/durable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/write_error.h"
#include "io/checkpoint/unfinished.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

void sync_path(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) cannot_write("open", path, errno);
  const int result = ::fsync(fd);
  const int code = errno;
  ::close(fd);
  // Some file systems cannot flush a folder; its names are then durable with the files.
  const bool unsupported = (flags & O_DIRECTORY) != 0 && (code == EINVAL || code == ENOTSUP);
  if (result != 0 && !unsupported) cannot_write("flush", path, code);
}

void rename_checked(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) cannot_write("put in place", to, errno);
}

bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Returns ".tmp-gone-0-tmp-best-old" for ".tmp-best-old".
std::string gone_name(const std::string& folder, int number) {
  const std::string name = fs::path(folder).filename().string();
  return parent_of(folder) + "/" + std::string(kGonePrefix) + std::to_string(number) + "-" +
         name.substr(name.starts_with('.') ? 1 : 0);
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) cannot_write("ask for free space in", folder, errno);
  if (room.f_blocks == 0) return UINT64_MAX;  // the file system does not report it
  return static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
}

}  // namespace

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  VT_REQUIRE(!error, ErrorKind::kData, "cannot list %s: %s", folder.c_str(), error.message().c_str());
  std::sort(names.begin(), names.end());
  return names;
}

void sync_file(const std::string& path) {
  sync_path(path, O_NONBLOCK);
}
void sync_folder(const std::string& path) {
  sync_path(path, O_DIRECTORY);
}

void require_no_file(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    throw Error(ErrorKind::kWrite, path + " is a file, and a folder is to be there",
                "name a folder, or take the file away");
}

void make_folders(const std::string& path) {
  std::vector<std::string> missing;
  std::error_code error;
  require_no_file(path);
  for (std::string at = path; !fs::exists(at, error); at = parent_of(at)) missing.push_back(at);
  for (; !missing.empty(); missing.pop_back()) {
    const std::string& folder = missing.back();
    // The parent exists: where mkdir reports none, the system itself does not allow folders there (/proc).
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
      cannot_write("create the folder", folder, errno == ENOENT ? EPERM : errno);
    sync_folder(parent_of(folder));
  }
  require_no_file(path);
}

void make_new_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) cannot_write("create the folder", path, errno);
}

bool finish_replacing(const std::string& to, const std::string& aside) {
  std::error_code ignored;
  for (int number = 0; number < kMostGone; ++number)
    if (const std::string gone = gone_name(aside, number); is_there(gone)) fs::remove_all(gone, ignored);
  if (!is_there(aside)) return false;
  if (is_there(to)) {
    discard(aside);
    return false;
  }
  rename_checked(aside, to);
  sync_folder(parent_of(to));
  return true;
}

void replace_folder(const std::string& from, const std::string& to, const std::string& aside) {
  finish_replacing(to, aside);
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_folder(parent_of(to));
  if (errno != EEXIST && errno != ENOTEMPTY) cannot_write("put in place", to, errno);
  const bool swapped = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0;
  if (!swapped) {
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) cannot_write("put in place", to, errno);
    rename_checked(to, aside);
    if (::rename(from.c_str(), to.c_str()) != 0) {
      const int code = errno;
      ::rename(aside.c_str(), to.c_str());
      cannot_write("put in place", to, code);
    }
  }
  sync_folder(parent_of(to));
  if (!swapped) return discard(aside);
  std::error_code ignored;
  fs::remove_all(from, ignored);
}

void replace_link(const std::string& path, const std::string& target, const std::string& temporary) {
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    if (errno == EPERM || errno == ENOTSUP) return;
    cannot_write("create the link", temporary, errno);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    cannot_write("put in place", path, code);
  }
  sync_folder(parent_of(path));
}

void remove_folder(const std::string& path) {
  const std::string hidden = parent_of(path) + "/" + unfinished_name("gone");
  rename_checked(path, hidden);
  try {
    sync_folder(parent_of(path));  // or the folder might come back without its files
  } catch (const Error&) {
    ::rename(hidden.c_str(), path.c_str());
    throw;
  }
  std::error_code stays;
  fs::remove_all(hidden, stays);
}

void discard(const std::string& path) {
  for (int number = 0; number < kMostGone; ++number) {
    const std::string gone = gone_name(path, number);
    if (::rename(path.c_str(), gone.c_str()) != 0) {
      if (errno == EEXIST || errno == ENOTEMPTY) continue;
      return;
    }
    std::error_code ignored;
    fs::remove_all(gone, ignored);
    return;
  }
}

bool has_space(const std::string& folder, uint64_t bytes) {
  return free_bytes(folder) >= bytes;
}

void require_space(const std::string& folder, uint64_t bytes) {
  const uint64_t room = free_bytes(folder);
  if (room >= bytes) return;
  throw Error(ErrorKind::kWrite,
              strf("not enough space in %s: %llu bytes needed, %llu free", folder.c_str(),
                   static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(room)),
              "free some space, keep fewer checkpoints, or choose another place with --out");
}

}  // namespace vitrail
