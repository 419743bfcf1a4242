#include "faults/run_faulted.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "faults/small_run.h"

namespace vitrail::testing {

namespace fs = std::filesystem;

WorkFolder::WorkFolder() {
  const bool in_memory = ::access("/dev/shm", W_OK) == 0;
  std::string pattern =
      (in_memory ? "/dev/shm" : fs::temp_directory_path().string()) + "/vitrail-faults-XXXXXX";
  path_ = ::mkdtemp(pattern.data());
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool is_long() {
  return std::getenv("VITRAIL_TEST_LONG") != nullptr;
}

namespace {

[[noreturn]] void become_save_loop(int output, const std::string& run_folder, int first, int last,
                                   const Fault& fault, const std::string& log, int keep, int ranks) {
  ::dup2(output, STDOUT_FILENO);
  ::setenv("LD_PRELOAD", VT_FAULT_SHIM, 1);
  ::setenv("FAULT_ROOT", (run_folder + "/checkpoints").c_str(), 1);
  ::setenv("FAULT_CLASS", fault.cls.c_str(), 1);
  ::setenv("FAULT_ACTION", fault.action.c_str(), 1);
  ::setenv("FAULT_AT", std::to_string(fault.at).c_str(), 1);
  ::setenv("FAULT_COUNT", (run_folder + "/calls").c_str(), 1);
  ::setenv("FAULT_LOG", log.c_str(), 1);
  const std::string from = std::to_string(first), to = std::to_string(last), kept = std::to_string(keep),
                    threads = std::to_string(ranks);
  ::execl(VT_SAVE_LOOP, VT_SAVE_LOOP, run_folder.c_str(), from.c_str(), to.c_str(), kept.c_str(),
          threads.c_str(), nullptr);
  ::_exit(127);
}

}  // namespace

Outcome run_faulted(const std::string& run_folder, int first, int last, const Fault& fault,
                    const std::string& log, int keep, int ranks) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) become_save_loop(pipe_ends[1], run_folder, first, last, fault, log, keep, ranks);
  ::close(pipe_ends[1]);
  Outcome outcome;
  char buffer[512];
  for (ssize_t got; (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    outcome.said.append(buffer, static_cast<size_t>(got));
  ::close(pipe_ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  outcome.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(outcome.killed || WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!outcome.killed) outcome.calls = std::stol(read_file(run_folder + "/calls", 100));
  return outcome;
}

int64_t examine(const std::string& run_folder) {
  CheckpointStore store(run_folder);
  int64_t newest = -1;
  for (const int64_t step : store.steps()) {
    try {
      EXPECT_TRUE(holds_its_step(store.open(step))) << "step " << step;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    newest = step;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(store.folder(), error)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.starts_with(".tmp-") || name.starts_with("step-") || name == "latest") << name;
  }
  const fs::path latest = store.folder() + "/latest";
  EXPECT_TRUE(!fs::is_symlink(fs::symlink_status(latest, error)) || fs::exists(latest, error))
      << "latest names " << fs::read_symlink(latest, error);
  return newest;
}

std::vector<std::string> unfinished_in(const std::string& run_folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints"))
    if (entry.path().filename().string().starts_with(".tmp-")) names.push_back(entry.path().filename());
  return names;
}

}  // namespace vitrail::testing
