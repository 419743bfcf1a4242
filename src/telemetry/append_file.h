// A file that grows by whole pieces during a run: a piece that does not fit is removed again, and the failure
// is reported once, never thrown, because a full disk must not end a training run. Knows no format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace vitrail {

using WriteTrouble = std::function<void(const Error&)>;

class AppendFile {
 public:
  // Opens at the end, creating what is missing; throws Error(kWrite) when that fails, because a run that
  // cannot write at all should not start. `trouble` (may be empty) is called at the first failure later on.
  AppendFile(std::string path, WriteTrouble trouble);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends all of `bytes` or nothing; false when it was nothing. A later piece is tried again.
  bool append(std::string_view bytes);
  // Flushes what was appended to the disk, so that a power failure does not lose it. A failure is reported.
  void sync();
  const std::string& path() const { return path_; }

 private:
  bool give_up(long long length, int code);
  void report(const Error& error);

  std::string path_;
  WriteTrouble trouble_;
  int fd_;
  bool reported_ = false;
};

}  // namespace vitrail
