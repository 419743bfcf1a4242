// A program that this process has started and that does not outlive it: it is told to end when this one is
// gone, whatever ended it. Its own children that it leaves behind become this process's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vitrail {

using Assignments = std::vector<std::pair<std::string, std::string>>;  // of environment variables

// Descriptors that take what a program writes; -1: where this process writes.
struct ChildOutputs {
  int out = -1, err = -1;
};

class ChildProcess {
 public:
  // `words` are the program and its arguments. Its standard input is empty, and signals from a terminal do
  // not reach it. Throws Error(kDevice) when no process can be made.
  ChildProcess(const std::vector<std::string>& words, const Assignments& environment,
               ChildOutputs outputs = {});
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The status that waitpid() gives, once it has ended.
  const std::optional<int>& status();
  void send(int signal) const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// Kills a process that this one has inherited, unless it has ended; false when it is none of ours.
bool kill_inherited(pid_t pid);

// Returns where a program lies that was built or installed with this one: in its folder, or in lib/vitrail
// beside bin. Throws Error(kDevice) with `remedy` where it is in neither.
std::string own_program(const std::string& name, const std::string& remedy);

// Runs a program with "--out FILE" after `words` and returns what it wrote there. Throws Error(kDevice) where
// it fails.
std::string output_of(std::vector<std::string> words);

// Says how a program ended, and what it wrote.
struct ProgramEnd {
  int code = 0;  // 128 and the signal's number where one ended it
  std::string out, err;
};
// Runs a program to its end. `go_on` is asked several times a second; when it says no, the program is told to
// end, and killed where it takes longer than a few seconds.
ProgramEnd run_program(const std::vector<std::string>& words, const Assignments& environment,
                       const std::function<bool()>& go_on);

}  // namespace vitrail
