// What the data commands share: their arguments, and going through a dataset on several threads in order.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "data/dataset.h"

namespace vitrail::cli {

PositionalSpec data_positional();
OptionSpec part_option();

// The part of DATA that --part names.
std::unique_ptr<Dataset> open_chosen_data(const Options& options);
// --threads, or every core.
int data_threads(const Options& options);

// What is wrong with a sample, in one line, without the name of the sample it may begin with.
std::string problem_text(const Error& error, const std::string& name);

// Calls make(i) for every i below `count` on the pool's threads and use(i, result, error) here, in order.
// `error` is what make threw when it is of kind data; any other is thrown on.
template <typename Result>
void in_order(int64_t count, ThreadPool& pool, Progress& progress, const std::function<Result(int64_t)>& make,
              const std::function<void(int64_t, Result&, const std::optional<Error>&)>& use) {
  const SignalGuard stop;
  const int64_t block = int64_t{32} * pool.threads();
  std::vector<Result> results;
  std::vector<std::optional<Error>> errors;
  for (int64_t first = 0; first < count; first += block) {
    stop.check(static_cast<size_t>(first), static_cast<size_t>(count));
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
    progress.advance(tasks);
  }
}

}  // namespace vitrail::cli
