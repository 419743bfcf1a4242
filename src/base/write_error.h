// The errors of system calls that write: what could not be done to which path, why, and what to try.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vitrail {

// Error(kWrite) because the disk or a quota is full: deleting files may help.
class NoRoom : public Error {
 public:
  using Error::Error;
};

// Throws "cannot ACTION PATH: why" for a call that failed with the errno `code`; NoRoom where space ran out.
[[noreturn]] void cannot_write(const char* action, const std::string& path, int code);

// Throws Error(kUsage) where two of these, options with what was given to them, name one path: they would
// overwrite each other. An empty path is none.
void require_different_paths(const std::vector<std::pair<std::string, std::string>>& outputs);

}  // namespace vitrail
