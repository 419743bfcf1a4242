// Checks what a rank asks of a collective, and that all ranks of a group ask for the same.
#include "dist/transport.h"

#include "base/error.h"

namespace vitrail {

namespace {
using Kind = Collective::Kind;

bool sums(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter;
}
bool has_peer(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kSend || kind == Kind::kReceive;
}

size_t counts_of(Kind kind, int size) {
  switch (kind) {
    case Kind::kReduceScatter:
    case Kind::kAllGather:
      return static_cast<size_t>(size);
    case Kind::kAllToAll:
      return 2 * static_cast<size_t>(size);
    default:
      return 1;
  }
}

bool same(const Collective& a, int a_rank, const Collective& b, int b_rank, int size) {
  if (a.kind == Kind::kBarrier || b.kind == Kind::kBarrier) return a.kind == b.kind;
  if (a.dtype != b.dtype) return false;
  if (a.kind == Kind::kSend || a.kind == Kind::kReceive) return a.kind != b.kind && a.counts == b.counts;
  if (a.kind != b.kind) return false;
  if (a.kind != Kind::kAllToAll) return a.counts == b.counts && (!has_peer(a.kind) || a.peer == b.peer);
  return a.counts[b_rank] == b.counts[size + a_rank] && b.counts[a_rank] == a.counts[size + b_rank];
}
}  // namespace

void check_collective(const Collective& c, int rank, int size) {
  if (c.kind == Kind::kBarrier) return;
  VT_CHECK(c.counts.size() == counts_of(c.kind, size), "%s among %d ranks", to_string(c).c_str(), size);
  VT_CHECK(!sums(c.kind) || can_sum(c.dtype), "%s: ranks do not sum this type", to_string(c).c_str());
  VT_CHECK(!has_peer(c.kind) || (c.peer >= 0 && c.peer < size), "%s: no rank %d among %d",
           to_string(c).c_str(), c.peer, size);
  VT_CHECK(c.channel == 0 || c.channel == 1, "%s on channel %d", to_string(c).c_str(), c.channel);
  VT_CHECK((c.kind != Kind::kSend && c.kind != Kind::kReceive) || c.peer != rank,
           "%s: rank %d is its own peer", to_string(c).c_str(), rank);
}

std::string to_string(const Collective& c) {
  if (c.kind == Kind::kBarrier) return to_string(c.kind);
  std::string text = strf("%s of %s [", to_string(c.kind), to_string(c.dtype));
  for (size_t i = 0; i < c.counts.size(); ++i) text += strf(i ? " %zu" : "%zu", c.counts[i]);
  return text + (c.kind == Kind::kBroadcast ? strf("] from rank %d", c.peer) : "]");
}

std::string disagreement(const Collective& mine, int my_rank, const Collective& other, int other_rank,
                         int size) {
  if (same(mine, my_rank, other, other_rank, size)) return {};
  return strf("rank %d started %s, rank %d started %s", other_rank, to_string(other).c_str(), my_rank,
              to_string(mine).c_str());
}

}  // namespace vitrail
