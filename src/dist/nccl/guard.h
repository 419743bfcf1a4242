// Watches the communicators of one rank, since nobody may be calling NCCL when something happens: a thread of
// its own sees NCCL's late errors, an abort of the ranks' groups and calls that do not return, and aborts.
// Knows no collective.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/communicator.h"
#include "dist/nccl/library.h"

namespace vitrail::nccl {

// A communicator of NCCL as its rank's thread and the guard see it.
class Watched {
 public:
  Watched(const Library& library, Communicator& group, Comm comm, double deadline_s)
      : library_(library), group_(group), comm_(comm), deadline_s_(deadline_s) {}

  Comm comm() const { return comm_; }
  const Library& library() const { return library_; }
  double deadline_s() const { return deadline_s_; }

  // The rank's thread is inside NCCL between these two. enter() throws when the group has failed.
  void enter(std::string what);
  void leave() { since_s_.store(0); }
  void throw_if_failed() const;
  // Throws what NCCL has returned, if it is an error, and fails the group with it.
  void check(Status status, const std::string& what);

  // Any thread may call it: the first failure stays, ends what is enqueued, and reaches the group.
  void fail(ErrorKind kind, const std::string& why);
  bool failed() const { return failed_.load(); }
  // The guard's turn.
  void look();
  // Frees it. Called by the rank's thread when the guard does not look any more.
  void end();

 private:
  const Library& library_;
  Communicator& group_;
  Comm comm_;
  double deadline_s_;
  std::atomic<double> since_s_{0};  // when the rank's thread entered NCCL; 0: it is outside
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // of what follows
  ErrorKind kind_ = ErrorKind::kComm;
  std::string why_, what_;
};

class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void watch(Watched* one);
  void forget(Watched* one);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watched*> watched_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace vitrail::nccl
