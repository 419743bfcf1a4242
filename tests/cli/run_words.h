// Runs the whole program inside the test, from its words to its exit code, with its stdout and stderr in
// files and no variables of Vitrail's but those given.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/run.h"
#include "launch/environment.h"
#include "temp_folder.h"

namespace vitrail::cli {

// A variable of the environment that has this value for as long as the object lives; null: it is not set.
class SetVariable {
 public:
  SetVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~SetVariable() { set(before_ ? before_->c_str() : nullptr); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value)
      ::setenv(name_.c_str(), value, 1);
    else
      ::unsetenv(name_.c_str());
  }
  std::string name_;
  std::optional<std::string> before_;
};

// A descriptor that is another file for as long as the object lives.
class Redirected {
 public:
  Redirected(int fd, int target) : fd_(fd), kept_(::dup(fd)) {
    std::fflush(nullptr);
    ::dup2(target, fd);
  }
  ~Redirected() {
    ::dup2(kept_, fd_);
    ::close(kept_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int fd_, kept_;
};

struct Ended {
  int code = -1;
  std::string out, err;
};

inline Ended run_words(const std::vector<std::string>& words,
                       const std::vector<std::pair<const char*, const char*>>& variables = {}) {
  std::vector<std::unique_ptr<SetVariable>> set;
  for (const std::string& name : environment_names())
    if (name.starts_with("VITRAIL_")) set.push_back(std::make_unique<SetVariable>(name, nullptr));
  // Kernels tuned on this machine must not affect a test.
  set.push_back(std::make_unique<SetVariable>("XDG_CONFIG_HOME", "/nonexistent"));
  for (const auto& [name, value] : variables) set.push_back(std::make_unique<SetVariable>(name, value));
  const TempFolder folder;
  const std::string out = folder.file("out", ""), err = folder.file("err", "");
  Ended ended;
  const int out_fd = ::open(out.c_str(), O_WRONLY), err_fd = ::open(err.c_str(), O_WRONLY);
  {
    const Redirected first(STDOUT_FILENO, out_fd), second(STDERR_FILENO, err_fd);
    ended.code = run(words);
  }
  ::close(out_fd);
  ::close(err_fd);
  constexpr size_t kMost = 16 << 20;
  ended.out = read_file(out, kMost);
  ended.err = read_file(err, kMost);
  return ended;
}

}  // namespace vitrail::cli
