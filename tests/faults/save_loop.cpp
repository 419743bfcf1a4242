// save_loop FOLDER FIRST LAST KEEP RANKS: a run that does nothing but save checkpoints of these steps and
// keep so many. Its ranks are threads that take turns. Says "saved N" or "failed N: why" for each, "made
// room: N" for one that went; its exit code is that of the last error.
#include <unistd.h>

#include <cstdlib>

#include "base/run_lock.h"
#include "faults/small_run.h"
#include "faults/turn_partners.h"

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

void save(CheckpointStore& store, const std::string& folder, int64_t step, int ranks) {
  if (ranks == 1) return store.save(testing::small_content(step));
  const auto errors = testing::on_ranks(ranks, [&](Partners& partners) {
    CheckpointStore other(folder);
    CheckpointStore& mine = partners.rank() == 0 ? store : other;
    mine.save(testing::small_share(step, partners.rank(), ranks), kLeastGood, &partners);
  });
  for (const auto& error : errors)
    if (!error != !errors[0]) std::abort();  // all of them fail, or none
  if (errors[0]) std::rethrow_exception(errors[0]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 64;
  const int ranks = std::atoi(argv[5]);
  const std::string folder = argv[1];
  CheckpointStore store(folder, {.keep_last = std::atol(argv[4])});
  store.on_made_room([](int64_t step) { say("made room: " + std::to_string(step) + "\n"); });
  attempt("start", [&] {
    const RunLock lock(folder);
    store.prepare();
    for (int64_t step = std::atol(argv[2]); step <= std::atol(argv[3]); ++step)
      attempt(std::to_string(step), [&] { save(store, folder, step, ranks); });
  });
  return exit_status;
}
