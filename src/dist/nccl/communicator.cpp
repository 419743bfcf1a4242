#include "dist/nccl/communicator.h"

#include <algorithm>
#include <numeric>

#include "dist/transport.h"

namespace vitrail::nccl {

namespace {
using Kind = Collective::Kind;

// The type that NCCL sums in.
Type type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return Type::kF64;
    case DType::kF32:
      return Type::kF32;
    case DType::kF16:
      return Type::kF16;
    case DType::kBF16:
      return Type::kBF16;
    case DType::kI64:
      return Type::kInt64;
    default:
      return Type::kInt32;  // check_collective lets no other pass
  }
}

const char* at(const void* base, size_t bytes) {
  return static_cast<const char*>(base) + bytes;
}
char* at(void* base, size_t bytes) {
  return static_cast<char*>(base) + bytes;
}

bool all_equal(const std::vector<size_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](size_t count) { return count == counts[0]; });
}

// Keeps the first error of several calls.
class First {
 public:
  void operator()(Status status) {
    if (status_ == Status::kSuccess && status != Status::kInProgress) status_ = status;
  }
  Status status() const { return status_; }

 private:
  Status status_ = Status::kSuccess;
};

// While it lives, the rank's thread is inside NCCL.
class Inside {
 public:
  Inside(Watched& watched, const std::string& what) : watched_(watched) { watched.enter(what); }
  ~Inside() { watched_.leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Watched& watched_;
};

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<Guard> guard, const Library& library, Communicator& group,
                                   Comm comm, double deadline_s)
    : guard_(std::move(guard)),
      watched_(library, group, comm, deadline_s),
      rank_(group.rank()),
      size_(group.size()) {
  guard_->watch(&watched_);
}

NcclCommunicator::~NcclCommunicator() {
  guard_->forget(&watched_);
  watched_.end();
}

void NcclCommunicator::enqueue(const Collective& c, void* stream) {
  check_collective(c, rank_, size_);
  VT_CHECK(c.kind != Kind::kBarrier, "devices have no barrier");
  const std::string what = to_string(c);
  const Inside inside(watched_, what);
  const Library& nccl = watched_.library();
  First first;
  first(nccl.group_start());
  first(calls_of(c, stream));
  first(nccl.group_end());
  watched_.check(first.status(), what);
  settle(what);
}

// Where NCCL was told not to block (NCCL_COMM_BLOCKING=0), nothing else may follow before it is done.
void NcclCommunicator::settle(const std::string& what) {
  Status now = Status::kInProgress;
  while (true) {
    watched_.throw_if_failed();
    watched_.check(watched_.library().async_error(watched_.comm(), &now), what);
    if (now != Status::kInProgress) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  watched_.check(now, what);
}

Status NcclCommunicator::calls_of(const Collective& c, void* stream) const {
  const Library& nccl = watched_.library();
  const Comm comm = watched_.comm();
  const size_t count = c.counts[0], bytes = count * size_of(c.dtype);
  switch (c.kind) {
    case Kind::kAllReduce:
      return count == 0 ? Status::kSuccess
                        : nccl.all_reduce(c.in, c.out, count, type_of(c.dtype), kSum, comm, stream);
    case Kind::kReduceScatter:
      return reduce_scatter(c, stream);
    case Kind::kAllGather:
      return all_gather(c, stream);
    case Kind::kAllToAll:
      return all_to_all(c, stream);
    case Kind::kBroadcast:
      return bytes == 0 ? Status::kSuccess
                        : nccl.broadcast(c.out, c.out, bytes, Type::kInt8, c.peer, comm, stream);
    case Kind::kSend:
      return bytes == 0 ? Status::kSuccess : nccl.send(c.in, bytes, Type::kInt8, c.peer, comm, stream);
    case Kind::kReceive:
      return bytes == 0 ? Status::kSuccess : nccl.receive(c.out, bytes, Type::kInt8, c.peer, comm, stream);
    case Kind::kBarrier:
      break;
  }
  return Status::kSuccess;
}

// NCCL's own wants pieces of one size; others are as many reductions, each to its rank.
Status NcclCommunicator::reduce_scatter(const Collective& c, void* stream) const {
  const Library& nccl = watched_.library();
  const Comm comm = watched_.comm();
  const Type type = type_of(c.dtype);
  if (c.counts[0] == 0 && all_equal(c.counts)) return Status::kSuccess;
  if (all_equal(c.counts)) return nccl.reduce_scatter(c.in, c.out, c.counts[0], type, kSum, comm, stream);
  First first;
  size_t before = 0;
  for (int r = 0; r < size_; ++r) {
    const size_t count = c.counts[static_cast<size_t>(r)];
    const char* piece = at(c.in, before * size_of(c.dtype));
    // Only the root's output is written; the others name their own input there.
    void* out = r == rank_ ? c.out : const_cast<char*>(piece);
    if (count > 0) first(nccl.reduce(piece, out, count, type, kSum, r, comm, stream));
    before += count;
  }
  return first.status();
}

Status NcclCommunicator::all_gather(const Collective& c, void* stream) const {
  const Library& nccl = watched_.library();
  const Comm comm = watched_.comm();
  const size_t unit = size_of(c.dtype);
  if (c.counts[0] == 0 && all_equal(c.counts)) return Status::kSuccess;
  if (all_equal(c.counts)) return nccl.all_gather(c.in, c.out, c.counts[0] * unit, Type::kInt8, comm, stream);
  First first;
  size_t before = 0;
  for (int r = 0; r < size_; ++r) {
    const size_t bytes = c.counts[static_cast<size_t>(r)] * unit;
    char* piece = at(c.out, before);
    if (bytes > 0)
      first(nccl.broadcast(r == rank_ ? c.in : piece, piece, bytes, Type::kInt8, r, comm, stream));
    before += bytes;
  }
  return first.status();
}

Status NcclCommunicator::all_to_all(const Collective& c, void* stream) const {
  const Library& nccl = watched_.library();
  const Comm comm = watched_.comm();
  const size_t unit = size_of(c.dtype), size = static_cast<size_t>(size_);
  First first;
  size_t sent = 0, got = 0;
  for (size_t r = 0; r < size; ++r) {
    const size_t to = c.counts[r] * unit, from = c.counts[size + r] * unit;
    if (to > 0) first(nccl.send(at(c.in, sent), to, Type::kInt8, static_cast<int>(r), comm, stream));
    if (from > 0) first(nccl.receive(at(c.out, got), from, Type::kInt8, static_cast<int>(r), comm, stream));
    sent += to;
    got += from;
  }
  return first.status();
}

}  // namespace vitrail::nccl
