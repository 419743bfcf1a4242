// A small file system in memory, seen by the calling thread and those it starts. Needs the right to mount.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>

namespace vitrail::testing {

class SmallDisk {
 public:
  SmallDisk(std::string path, size_t bytes) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    made_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()) == 0;
  }
  ~SmallDisk() {
    if (made_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool made() const { return made_; }
  const std::string& path() const { return path_; }
  bool make_read_only() const {
    return ::mount("none", path_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace vitrail::testing
