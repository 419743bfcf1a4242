#include "dist/nccl/guard.h"

#include "base/timing.h"

namespace vitrail::nccl {

namespace {

constexpr std::chrono::milliseconds kLook{50};  // between two looks

}  // namespace

void Watched::enter(std::string what) {
  throw_if_failed();
  {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
  }
  since_s_.store(now_s());
}

void Watched::throw_if_failed() const {
  if (!failed_.load()) return;
  const std::lock_guard lock(mutex_);
  throw Error(kind_, why_);
}

void Watched::check(Status status, const std::string& what) {
  throw_if_failed();  // what NCCL returns after an abort is not the reason
  if (status == Status::kSuccess || status == Status::kInProgress) return;
  const char* detail = library_.last_error ? library_.last_error(nullptr) : nullptr;
  fail(ErrorKind::kComm, strf("%s: NCCL says '%s'%s%s", what.c_str(), library_.error_text(status),
                              detail && *detail ? ": " : "", detail ? detail : ""));
  throw_if_failed();
}

// NCCL allows this while the rank's thread is inside one of its functions, which returns then.
void Watched::fail(ErrorKind kind, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load()) return;
    kind_ = kind;
    why_ = why;
    failed_.store(true);
  }
  group_.abort(why);
  library_.abort(comm_);
}

void Watched::look() {
  if (failed_.load()) return;
  if (const std::string why = group_.failure(); !why.empty()) return fail(ErrorKind::kComm, why);
  Status late = Status::kSuccess;
  if (library_.async_error(comm_, &late) == Status::kSuccess && late != Status::kSuccess &&
      late != Status::kInProgress)
    return fail(ErrorKind::kComm, strf("NCCL says '%s' about what it was doing", library_.error_text(late)));
  const double since = since_s_.load();
  if (since == 0 || now_s() - since < deadline_s_) return;
  std::string what;
  {
    const std::lock_guard lock(mutex_);
    what = what_;
  }
  fail(ErrorKind::kDeadline, strf("%s: NCCL did not answer within %g s", what.c_str(), deadline_s_));
}

void Watched::end() {
  if (failed_.load()) return;  // freed by the abort
  if (group_.failure().empty())
    library_.destroy(comm_);
  else
    library_.abort(comm_);  // destroying would wait for ranks that may never come
  failed_.store(true);
}

Guard::Guard() : thread_([this] { run(); }) {}

Guard::~Guard() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Guard::watch(Watched* one) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(one);
}

void Guard::forget(Watched* one) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, one);
}

void Guard::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    for (Watched* one : watched_) one->look();
    changed_.wait_for(lock, kLook, [this] { return over_; });
  }
}

}  // namespace vitrail::nccl
