#include "dist/threads/group.h"

#include "dist/transport.h"

namespace vitrail::threads {

namespace {
using Kind = Collective::Kind;
bool is_pair(Kind kind) {
  return kind == Kind::kSend || kind == Kind::kReceive;
}
}  // namespace

Group::Group(std::shared_ptr<World> world, std::vector<int> members)
    : world_(std::move(world)), members_(std::move(members)) {}

Group::Key Group::next_key(int rank, const Collective& c) {
  const int from = !is_pair(c.kind) ? -1 : c.kind == Kind::kSend ? rank : c.peer;
  const int to = !is_pair(c.kind) ? -1 : c.kind == Kind::kSend ? c.peer : rank;
  const int channel = is_pair(c.kind) ? c.channel : 0;
  return {from, to, channel, started_[{rank, from, to, channel}]++};
}

std::string Group::mismatch(const Slot& slot, int party, const Collective& c, const Key& key) const {
  const auto rank_of = [&](int p) {
    return !is_pair(c.kind) ? p : p == 0 ? std::get<0>(key) : std::get<1>(key);
  };
  const int64_t number = std::get<3>(key);
  for (int other : slot.published()) {
    const std::string text = disagreement(c, rank_of(party), slot.entry(other), rank_of(other), size());
    if (!text.empty()) return strf("collective %lld: %s", static_cast<long long>(number), text.c_str());
  }
  return {};
}

Group::Seat Group::enter(int rank, const Collective& c) {
  const std::lock_guard lock(mutex_);
  const Key key = next_key(rank, c);
  std::shared_ptr<Slot>& place = slots_[key];
  if (!place) place = std::make_shared<Slot>(is_pair(c.kind) ? 2 : size());
  Seat seat{place, is_pair(c.kind) ? static_cast<int>(c.kind == Kind::kReceive) : rank};
  const auto [from, to, channel, number] = key;
  if (is_pair(c.kind))
    seat.ranks = {members_[static_cast<size_t>(from)], members_[static_cast<size_t>(to)]};
  else
    seat.ranks = members_;
  if (!seat.slot->failed()) {
    const std::string problem = mismatch(*seat.slot, seat.party, c, key);
    if (!problem.empty()) seat.slot->fail(ErrorKind::kInternal, problem);
  }
  const bool all = seat.slot->publish(seat.party, c);
  if (all) slots_.erase(key);
  if (all || seat.slot->failed())
    for (int member : seat.ranks) world_->event_count(member).notify();
  if (seat.slot->failed()) throw_why(*seat.slot);
  return seat;
}

void Group::throw_why(const Slot& slot) const {
  world_->throw_if_aborted();
  slot.throw_if_failed();
}

void Group::fail(Slot& slot, ErrorKind kind, const std::string& why) {
  const std::lock_guard lock(mutex_);
  slot.fail(kind, why);
}

std::shared_ptr<Group> Group::part(int64_t split, int color, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  Part& part = parts_[{split, color}];
  if (!part.group) {
    std::vector<int> ranks;
    ranks.reserve(members.size());
    for (int member : members) ranks.push_back(members_[static_cast<size_t>(member)]);
    part.group = std::make_shared<Group>(world_, std::move(ranks));
  }
  std::shared_ptr<Group> group = part.group;
  if (++part.taken == group->size()) parts_.erase({split, color});
  return group;
}

}  // namespace vitrail::threads
