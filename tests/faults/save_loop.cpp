// save_loop FOLDER FIRST LAST KEEP: a run that does nothing but save checkpoints of these steps and keep so
// many. Says "saved N" or "failed N: why" for each, "made room: N" for one that went; its exit code is that
// of the last error.
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
  if (argc != 5) return 64;
  const std::string folder = argv[1];
  CheckpointStore store(folder, {.keep_last = std::atol(argv[4])});
  store.on_made_room([](int64_t step) { say("made room: " + std::to_string(step) + "\n"); });
  attempt("start", [&] {
    const RunLock lock(folder);
    store.prepare();
    for (int64_t step = std::atol(argv[2]); step <= std::atol(argv[3]); ++step)
      attempt(std::to_string(step), [&] { store.save(testing::small_content(step)); });
  });
  return exit_status;
}
