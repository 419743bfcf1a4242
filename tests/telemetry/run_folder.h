// A folder of its own for a test, gone with it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"

namespace vitrail {

class RunFolder {
 public:
  RunFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vitrail-telemetry-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string content(const std::string& name) const { return read_file(file(name), 64 << 20); }

 private:
  std::string path_;
};

}  // namespace vitrail
