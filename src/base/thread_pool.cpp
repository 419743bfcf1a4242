#include "base/thread_pool.h"

#include <chrono>
#include <utility>

namespace vitrail {

Error thread_error(const std::system_error& refused, size_t started, size_t wanted, const char* what,
                   const std::string& fewer) {
  return {ErrorKind::kDevice,
          strf("only %zu of %zu %s could be started: %s", started, wanted, what, refused.what()),
          fewer + ", or a higher limit on processes and memory"};
}

namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

// The pool and worker whose task this thread is running, for nested calls.
thread_local const ThreadPool* current_pool = nullptr;
thread_local int current_worker = 0;

class CurrentTask {
 public:
  CurrentTask(const ThreadPool* pool, int worker)
      : pool_(std::exchange(current_pool, pool)), worker_(std::exchange(current_worker, worker)) {}
  CurrentTask(const CurrentTask&) = delete;
  CurrentTask& operator=(const CurrentTask&) = delete;
  ~CurrentTask() {
    current_pool = pool_;
    current_worker = worker_;
  }

 private:
  const ThreadPool* pool_;
  int worker_;
};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `ready`, without yielding the processor; false when it took longer than kSpin.
template <typename Ready>
bool spin_until(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  VT_REQUIRE(threads >= 1, ErrorKind::kConfig, "a thread pool needs at least 1 thread, not %d", threads);
  try {
    workers_.reserve(static_cast<size_t>(threads - 1));
    for (int worker = 1; worker < threads; ++worker)
      workers_.emplace_back([this, worker] { worker_loop(worker); });
  } catch (const std::system_error& error) {
    const auto started = static_cast<size_t>(this->threads());
    stop();
    throw thread_error(error, started, static_cast<size_t>(threads), "threads", "fewer threads (--threads)");
  } catch (...) {  // no memory for one more
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stop_ = true;
  ++wakeups_;
  wakeups_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(int64_t tasks, Job job) {
  if (current_pool == this) {
    for (int64_t task = 0; task < tasks; ++task) job.call(job.body, task, current_worker);
    return;
  }
  if (tasks > 0) run_shared(tasks, job);
}

void ThreadPool::run_shared(int64_t tasks, Job job) {
  VT_CHECK(tasks <= INT32_MAX, "%lld tasks", static_cast<long long>(tasks));
  std::lock_guard lock(callers_);
  job_ = job;
  tasks_ = tasks;
  pending_.store(static_cast<int32_t>(tasks), std::memory_order_relaxed);
  left_.store(tasks, std::memory_order_release);
  if (tasks > 1 && !workers_.empty()) {
    ++wakeups_;
    wakeups_.notify_all();
  }
  while (run_next(0)) {
  }
  if (!spin_until([this] { return pending_.load(std::memory_order_acquire) == 0; })) {
    while (const int32_t pending = pending_.load(std::memory_order_acquire)) pending_.wait(pending);
  }
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Claims and runs one task; false when none is left.
bool ThreadPool::run_next(int worker) {
  int64_t left = left_.load(std::memory_order_relaxed);
  do {
    if (left == 0) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
  if (!failed_.load(std::memory_order_relaxed)) {
    CurrentTask current(this, worker);
    try {
      job_.call(job_.body, tasks_ - left, worker);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_all();
  return true;
}

void ThreadPool::worker_loop(int worker) {
  for (;;) {
    const uint32_t seen = wakeups_.load();  // before stop_: a wake-up after this line ends the wait below
    if (stop_) return;
    while (run_next(worker)) {
    }
    const auto news = [&] { return wakeups_.load(std::memory_order_relaxed) != seen; };
    if (!spin_until(news)) wakeups_.wait(seen);
  }
}

}  // namespace vitrail
