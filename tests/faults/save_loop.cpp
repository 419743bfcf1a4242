// save_loop FOLDER FIRST LAST: a run that does nothing but save checkpoints of these steps. Says "saved N" or
// "failed N: why" for each; its exit code is that of the last error.
#include <unistd.h>

#include <cstdlib>

#include "base/run_lock.h"
#include "faults/small_run.h"

namespace {

using namespace vitrail;

int exit_status = 0;

void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

template <typename Body>
void attempt(const std::string& what, Body&& body) {
  try {
    body();
    if (what != "start") say("saved " + what + "\n");
  } catch (const Error& error) {
    say("failed " + what + ": " + error.what() + "\n");
    exit_status = exit_code(error.kind());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::string folder = argv[1];
  CheckpointStore store(folder, {.keep_last = 2});
  attempt("start", [&] {
    const RunLock lock(folder);
    store.prepare();
    for (int64_t step = std::atol(argv[2]); step <= std::atol(argv[3]); ++step)
      attempt(std::to_string(step), [&] { store.save(testing::small_content(step)); });
  });
  return exit_status;
}
