#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace vitrail {
namespace {

class ThreadPoolSizes : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolSizes, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    pool.run(tasks, [&](int64_t task, int) { ++runs[static_cast<size_t>(task)]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1) << tasks << " tasks";
  }
}

TEST_P(ThreadPoolSizes, NeverGivesOneWorkerToTwoTasksAtATime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(static_cast<size_t>(pool.threads()));
  std::atomic<bool> shared{false};
  for (int repeat = 0; repeat < 50; ++repeat) {
    pool.run(40, [&](int64_t, int worker) {
      if (busy.at(static_cast<size_t>(worker))++ != 0) shared = true;
      --busy[static_cast<size_t>(worker)];
    });
  }
  EXPECT_FALSE(shared);
}

// Short runs in a row, some after the workers fell asleep: a lost wake-up or a stale job would show.
TEST_P(ThreadPoolSizes, ManyShortRuns) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum{0};
  for (int repeat = 0; repeat < 2000; ++repeat) {
    pool.run(1 + repeat % 5, [&](int64_t task, int) { sum += task + 1; });
    if (repeat % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sum, 400 * (1 + 3 + 6 + 10 + 15));
}

TEST_P(ThreadPoolSizes, RethrowsAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_THROW(pool.run(50,
                          [](int64_t task, int) {
                            if (task == 20) throw std::runtime_error("task 20");
                          }),
                 std::runtime_error);
    std::atomic<int> runs{0};
    pool.run(10, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 10);
  }
}

TEST_P(ThreadPoolSizes, NestedRunsInlineAsTheSameWorker) {
  ThreadPool pool(GetParam());
  std::atomic<int> inner{0}, strangers{0};
  pool.run(8, [&](int64_t, int outer_worker) {
    const auto thread = std::this_thread::get_id();
    pool.run(5, [&](int64_t, int worker) {
      ++inner;
      if (worker != outer_worker || std::this_thread::get_id() != thread) ++strangers;
    });
  });
  EXPECT_EQ(inner, 40);
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, EveryWorkerNestsAsItself) {
  ThreadPool pool(3);
  std::atomic<int> inside{0}, strangers{0};
  // Each task waits for the other two, so three workers take one each.
  pool.run(3, [&](int64_t, int outer_worker) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
    pool.run(2, [&](int64_t, int worker) { strangers += worker != outer_worker; });
  });
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, NoTaskStartsAfterAFailure) {
  ThreadPool pool(1);
  int started = 0;
  EXPECT_THROW(pool.run(50,
                        [&](int64_t task, int) {
                          ++started;
                          if (task == 20) throw std::runtime_error("task 20");
                        }),
               std::runtime_error);
  EXPECT_EQ(started, 21);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolSizes, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, SpreadsTasksOverThreads) {
  ThreadPool pool(3);
  std::atomic<int> inside{0};
  std::set<int> workers;
  std::mutex mutex;
  // Each task waits for the other two, so this only ends when three threads take one each.
  pool.run(3, [&](int64_t, int worker) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
    std::lock_guard lock(mutex);
    workers.insert(worker);
  });
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
}

TEST(ThreadPool, PoolsNestInsideEachOther) {
  ThreadPool outer(2), inner_a(2), inner_b(2);
  std::atomic<int> runs{0};
  outer.run(2, [&](int64_t task, int) { (task ? inner_a : inner_b).run(10, [&](int64_t, int) { ++runs; }); });
  EXPECT_EQ(runs, 20);
}

TEST(ThreadPool, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  callers.reserve(sums.size());
  for (int64_t& sum : sums) {
    callers.emplace_back([&pool, &sum] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        std::vector<int64_t> parts(6);
        pool.run(6, [&](int64_t task, int) { parts[static_cast<size_t>(task)] = task; });
        sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 1500);
}

TEST(ThreadPool, RefusesNoThreads) {
  EXPECT_THROW(ThreadPool(0), Error);
}

TEST(ThreadPool, MayBeBuiltAndDestroyedAtOnce) {
  for (int repeat = 0; repeat < 200; ++repeat) ThreadPool(4);
}

// Threads that cannot be started are an error, not the end of the process. (Sanitizers need the address
// space.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[noreturn]] void start_too_many_threads() {
  const rlimit limit{1 << 28, 1 << 28};
  setrlimit(RLIMIT_AS, &limit);
  try {
    const ThreadPool pool(2000);
  } catch (const Error& error) {
    _exit(exit_code(error.kind()));
  }
  _exit(0);
}

TEST(ThreadPoolDeath, TooManyThreadsAreRefused) {
  EXPECT_EXIT(start_too_many_threads(), testing::ExitedWithCode(69), "");
}
#endif

}  // namespace
}  // namespace vitrail
