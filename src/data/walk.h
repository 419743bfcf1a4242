// Going through a dataset on several threads, in order, past samples that cannot be read. Knows no option and
// shows no progress: its callbacks do.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"

namespace vitrail {

struct WalkHooks {
  std::function<void(int64_t done, int64_t total)> check = {};  // between blocks; may throw to stop
  std::function<void(int64_t count)> advance = {};              // so many more are done
};

// Returns what is wrong with a sample, in one line, without the name of the sample it may begin with.
inline std::string problem_text(const Error& error, const std::string& name) {
  std::string text = error.message();
  for (const std::string& place : error.context())
    if (place != shown(name)) text = place + ": " + text;
  // A path in a message may hold the line end that is the trouble.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text;
}

// Calls make(i) for every i below `count` on the pool's threads and use(i, result, error) here, in order.
// `error` is what make threw when it is of kind data; any other is thrown on.
template <typename Result>
void in_order(int64_t count, ThreadPool& pool, const WalkHooks& hooks,
              const std::function<Result(int64_t)>& make,
              const std::function<void(int64_t, Result&, const std::optional<Error>&)>& use) {
  const int64_t block = int64_t{32} * pool.threads();
  std::vector<Result> results;
  std::vector<std::optional<Error>> errors;
  for (int64_t first = 0; first < count; first += block) {
    if (hooks.check) hooks.check(first, count);
    const int64_t tasks = std::min(block, count - first);
    results.assign(static_cast<size_t>(tasks), Result());
    errors.assign(static_cast<size_t>(tasks), std::nullopt);
    pool.run(tasks, [&](int64_t task, int) {
      try {
        results[static_cast<size_t>(task)] = make(first + task);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kData) throw;
        errors[static_cast<size_t>(task)] = error;
      }
    });
    for (int64_t task = 0; task < tasks; ++task)
      use(first + task, results[static_cast<size_t>(task)], errors[static_cast<size_t>(task)]);
    if (hooks.advance) hooks.advance(tasks);
  }
}

}  // namespace vitrail
