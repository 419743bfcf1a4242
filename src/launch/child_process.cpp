#include "launch/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/stop.h"

namespace vitrail {

namespace {

constexpr int kNotStarted = 127;  // the exit code of a shell for a program that it cannot start

[[noreturn]] void become(const std::vector<std::string>& words, const Assignments& environment,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);
  ::setpgid(0, 0);
  for (const int signal : kStopSignals) std::signal(signal, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(kNotStarted);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, const Assignments& environment) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(words, environment, parent);
  VT_REQUIRE(pid_ > 0, ErrorKind::kDevice, "no process can be started: %s", std::strerror(errno));
}

ChildProcess::~ChildProcess() {
  if (status()) return;
  send(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

const std::optional<int>& ChildProcess::status() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void ChildProcess::send(int signal) const {
  if (!status_) ::kill(pid_, signal);
}

bool kill_inherited(pid_t pid) {
  if (::waitpid(pid, nullptr, WNOHANG) != 0) return false;
  ::kill(pid, SIGCONT);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return true;
}

}  // namespace vitrail
