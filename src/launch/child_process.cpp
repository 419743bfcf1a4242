#include "launch/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/stop.h"
#include "io/find_model.h"

namespace vitrail {

namespace {

constexpr int kNotStarted = 127;    // the exit code of a shell for a program that it cannot start
constexpr int kDataDescriptor = 1;  // where a program writes its data

// Signals that ask this process to stop wait while it is doubled: its child still has its handlers, and would
// forget them when it becomes another program.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t stops;
    ::sigemptyset(&stops);
    for (const int signal : kStopSignals) ::sigaddset(&stops, signal);
    ::pthread_sigmask(SIG_BLOCK, &stops, &before_);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  void release() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

[[noreturn]] void become(const std::vector<std::string>& words, const Assignments& environment,
                         ChildOutputs outputs, pid_t parent, const HeldSignals& held) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);
  ::setpgid(0, 0);
  for (const int signal : kStopSignals) std::signal(signal, SIG_DFL);
  held.release();
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  if (outputs.out >= 0) ::dup2(outputs.out, kDataDescriptor);
  if (outputs.err >= 0) ::dup2(outputs.err, STDERR_FILENO);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(kNotStarted);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, const Assignments& environment,
                           ChildOutputs outputs) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = ::getpid();
  const HeldSignals held;
  pid_ = ::fork();
  if (pid_ == 0) become(words, environment, outputs, parent, held);
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

namespace {

// A file in memory, which the child inherits by its number.
class Sheet {
 public:
  Sheet() : fd_(::memfd_create("vitrail-output", 0)) {
    VT_REQUIRE(fd_ >= 0, ErrorKind::kDevice, "no memory for the output of a program");
  }
  ~Sheet() { ::close(fd_); }
  Sheet(const Sheet&) = delete;
  Sheet& operator=(const Sheet&) = delete;

  int descriptor() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  std::string text() const {
    std::string all;
    char piece[4096];
    for (ssize_t got = 0; (got = ::pread(fd_, piece, sizeof piece, static_cast<off_t>(all.size()))) > 0;)
      all.append(piece, static_cast<size_t>(got));
    return all;
  }

 private:
  int fd_;
};

}  // namespace

std::string own_program(const std::string& name, const std::string& remedy) {
  const std::filesystem::path folder = this_program().parent_path();
  for (const std::filesystem::path& file : {folder / name, folder.parent_path() / "lib/vitrail" / name}) {
    if (file.parent_path() != folder && folder.filename() != "bin") continue;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file.string();
  }
  throw Error(ErrorKind::kDevice, name + " is not beside this program", remedy);
}

std::string output_of(std::vector<std::string> words) {
  const Sheet sheet;
  words.insert(words.end(), {"--out", sheet.path()});
  ChildProcess child(words, {});
  while (!child.status()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int status = *child.status();
  VT_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, ErrorKind::kDevice, "%s failed (status %d)",
             words[0].c_str(), status);
  return sheet.text();
}

ProgramEnd run_program(const std::vector<std::string>& words, const Assignments& environment,
                       const std::function<bool()>& go_on) {
  constexpr auto kPoll = std::chrono::milliseconds(50);
  constexpr auto kPatience = std::chrono::seconds(8);
  const Sheet out, err;
  ChildProcess child(words, environment, {out.descriptor(), err.descriptor()});
  std::optional<std::chrono::steady_clock::time_point> told;
  while (!child.status()) {
    const auto now = std::chrono::steady_clock::now();
    if (!told && !go_on()) {
      child.send(SIGTERM);
      told = now;
    }
    if (told && now - *told > kPatience) child.send(SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
  const int status = *child.status();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.text(), err.text()};
}

}  // namespace vitrail
