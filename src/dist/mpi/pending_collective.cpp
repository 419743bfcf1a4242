#include "dist/mpi/pending_collective.h"

#include <cstring>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "dist/transport.h"

namespace vitrail::mpi {

namespace {
using Kind = Collective::Kind;

constexpr size_t kSmallBytes = 16 << 10;  // of all ranks together: a second round would cost more
constexpr int kPairTag = 0, kFirstTag = 2, kTags = 8192;  // MPI promises tags up to 32767

size_t before(const std::vector<size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, size_t{0});
}

void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}
}  // namespace

Group::Group(std::shared_ptr<Library> shared, MPI_Comm group) : library(std::move(shared)), comm(group) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
}
Group::~Group() {
  if (!library->failed()) MPI_Comm_free(&comm);
}

// Collectives on their way at once are told apart by their tags: their second rounds begin in any order.
PendingCollective::PendingCollective(std::shared_ptr<Group> group, const Collective& collective)
    : group_(std::move(group)),
      collective_(collective),
      round_(*group_->library, group_->comm, group_->rank, group_->size, size_of(collective.dtype)) {
  const bool is_pair = collective.kind == Kind::kSend || collective.kind == Kind::kReceive;
  tag_ = is_pair ? kPairTag + collective.channel : kFirstTag + static_cast<int>(group_->started++ % kTags);
  round_.use_tag(tag_);
  first_round();
  group_->library->enter(this);
}

PendingCollective::~PendingCollective() {
  Library& library = *group_->library;
  library.leave(this);
  if (!finished_)
    library.fail(
        strf("rank %d left %s before it was complete", group_->rank, to_string(collective_).c_str()));
  library.give_back(std::move(scratch_));
}

bool PendingCollective::poll() {
  return step();
}

void PendingCollective::wait() {
  while (!finished_) {
    group_->library->move_on();
    if (!finished_) std::this_thread::yield();  // ranks may outnumber cores
  }
}

bool PendingCollective::step() {
  if (finished_) return true;
  group_->library->throw_if_failed();
  if (!round_.test() || (++rounds_ == 1 && second_round())) return false;
  finished_ = true;
  return true;
}

const char* PendingCollective::in(size_t element) const {
  return static_cast<const char*>(collective_.in) + element * size_of(collective_.dtype);
}
char* PendingCollective::out(size_t element) const {
  return static_cast<char*>(collective_.out) + element * size_of(collective_.dtype);
}

bool PendingCollective::is_small() const {
  const auto size = static_cast<size_t>(group_->size);
  return size == 1 || collective_.counts[0] * size_of(collective_.dtype) <= kSmallBytes / size;
}

Round::Counts PendingCollective::pieces() const {
  Counts pieces;
  for (int r = 0; r < group_->size; ++r)
    pieces.push_back(cut_of(collective_.counts[0], r + 1, group_->size, collective_.dtype) -
                     cut_of(collective_.counts[0], r, group_->size, collective_.dtype));
  return pieces;
}

void PendingCollective::gather_for_sum(const Counts& pieces) {
  const Counts own(pieces.size(), pieces[static_cast<size_t>(group_->rank)]);
  scratch_ = group_->library->take(own[0] * own.size() * size_of(collective_.dtype));
  round_.receive_pieces(scratch_.bytes.get(), own);
  round_.send_pieces(in(), pieces);
}

void PendingCollective::sum_pieces(void* out, const void* own, size_t count) {
  std::vector<const void*> ins;
  ins.reserve(static_cast<size_t>(group_->size));
  for (int r = 0; r < group_->size; ++r)
    ins.push_back(r == group_->rank
                      ? own
                      : scratch_.bytes.get() + static_cast<size_t>(r) * count * size_of(collective_.dtype));
  sum_ranges(collective_.dtype, ins, {&out, 1}, count);
}

// What is large leaves its root in pieces, which the ranks that have got them hand on.
void PendingCollective::broadcast_first() {
  const size_t count = collective_.counts[0];
  const int me = group_->rank, root = collective_.peer;
  if (is_small()) return me == root ? round_.send_everyone(out(), count) : round_.receive(out(), count, root);
  const Counts parts = pieces();
  if (me == root) return round_.send_pieces(out(), parts);
  round_.receive(out(before(parts, me)), parts[static_cast<size_t>(me)], root);
}

void PendingCollective::first_round() {
  const Counts& counts = collective_.counts;
  const int size = group_->size, me = group_->rank;
  const auto place = static_cast<size_t>(me);
  switch (collective_.kind) {
    case Kind::kAllReduce:
      if (!is_small()) return gather_for_sum(pieces());
      scratch_ = group_->library->take(counts[0] * size_of(collective_.dtype) * static_cast<size_t>(size));
      round_.receive_pieces(scratch_.bytes.get(), Counts(static_cast<size_t>(size), counts[0]));
      return round_.send_everyone(in(), counts[0]);
    case Kind::kReduceScatter:
      return gather_for_sum(counts);
    case Kind::kAllGather:
      copy(out(before(counts, me)), in(), counts[place] * size_of(collective_.dtype));
      round_.receive_pieces(out(), counts);
      return round_.send_everyone(in(), counts[place]);
    case Kind::kAllToAll: {
      const Counts sent(counts.begin(), counts.begin() + size), got(counts.begin() + size, counts.end());
      copy(out(before(got, me)), in(before(sent, me)), sent[place] * size_of(collective_.dtype));
      round_.receive_pieces(out(), got);
      return round_.send_pieces(in(), sent);
    }
    case Kind::kBroadcast:
      return broadcast_first();
    case Kind::kSend:
      return round_.send(in(), counts[0], collective_.peer);
    case Kind::kReceive:
      return round_.receive(out(), counts[0], collective_.peer);
    case Kind::kBarrier:
      return round_.barrier();
  }
}

bool PendingCollective::second_round() {
  const Counts& counts = collective_.counts;
  const int me = group_->rank;
  if (collective_.kind == Kind::kReduceScatter)
    sum_pieces(out(), in(before(counts, me)), counts[static_cast<size_t>(me)]);
  const bool reduces = collective_.kind == Kind::kAllReduce, spreads = collective_.kind == Kind::kBroadcast;
  if ((!reduces && !spreads) || is_small()) {
    if (reduces) sum_pieces(out(), in(), counts[0]);
    return false;
  }
  const Counts parts = pieces();
  const size_t first = before(parts, me), own = parts[static_cast<size_t>(me)];
  if (reduces) sum_pieces(out(first), in(first), own);
  round_.use_tag(tag_ + kTags);
  if (reduces || me != collective_.peer) round_.receive_pieces(out(), parts);
  round_.send_everyone(out(first), own, reduces ? -1 : collective_.peer);
  return true;
}

}  // namespace vitrail::mpi
