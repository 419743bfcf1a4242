// A fixed set of worker threads that share numbered tasks. Several pools may coexist, none is global. A task
// must be a fixed piece of work, so that results never depend on the number of threads. It knows nothing of
// what a task does.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace vitrail {

// Returns the error of threads that the system refuses to start. `what` is "threads" or a longer name of
// them; `fewer` says how to ask for fewer.
Error thread_error(const std::system_error& refused, size_t started, size_t wanted, const char* what,
                   const std::string& fewer);

// No command and no caller of the API may ask for more.
inline constexpr int kMaxThreads = 4096;

class ThreadPool {
 public:
  // The thread that calls run() is one of `threads` (at least 1).
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, worker) once for every task in [0, tasks) and returns when all have returned;
  // 0 <= worker < threads() is never shared by two tasks at a time. Tasks start in order. The first
  // exception is rethrown here and tasks not yet started are dropped. From inside a task of this pool
  // the tasks run inline, as the same worker. Calls from several threads take turns.
  template <typename Body>
  void run(int64_t tasks, const Body& body) {
    run_erased(tasks, {&body, [](const void* self, int64_t task, int worker) {
                         (*static_cast<const Body*>(self))(task, worker);
                       }});
  }

 private:
  struct Job {
    const void* body = nullptr;
    void (*call)(const void*, int64_t, int) = nullptr;
  };

  void run_erased(int64_t tasks, Job job);
  void run_shared(int64_t tasks, Job job);
  bool run_next(int worker);
  void worker_loop(int worker);
  void stop();

  std::vector<std::thread> workers_;
  std::mutex callers_;  // held for the whole of a shared run
  // A worker reads job_ and tasks_ only after it took a task from left_, and the caller replaces them
  // only when pending_ is 0, so a late worker can never see a half-written job.
  Job job_;
  int64_t tasks_ = 0;
  alignas(64) std::atomic<int64_t> left_{0};  // tasks not yet claimed
  alignas(64) std::atomic<int32_t> pending_{
      0};  // tasks that have not returned; 32 bits can be waited on directly
  alignas(64) std::atomic<uint32_t> wakeups_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

}  // namespace vitrail
