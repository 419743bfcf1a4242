// A group of rank threads: which ranks of the world it has, and the meeting place of their collectives. Ranks
// number what they start; what has the same number is the same collective. Does no work and never waits.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "dist/threads/slot.h"
#include "dist/threads/world.h"

namespace vitrail::threads {

class Group {
 public:
  // `members`: the ranks of the world, in the order of this group.
  Group(std::shared_ptr<World> world, std::vector<int> members);

  World& world() const { return *world_; }
  int size() const { return static_cast<int>(members_.size()); }

  // A rank's side of a collective: the slot and the place in it.
  struct Seat {
    std::shared_ptr<Slot> slot;
    int party = 0;
    std::vector<int> ranks = {};  // of the world, by party
  };
  // Puts down what `rank` of this group starts. Throws Error(kInternal), there and for the others, when they
  // started something else.
  Seat enter(int rank, const Collective& collective);
  void fail(Slot& slot, ErrorKind kind, const std::string& why);
  // Throws why a slot failed. A rank that leaves because of an abort fails the slots it was in: the abort is
  // the reason.
  void throw_why(const Slot& slot) const;
  // Returns the group that `members` of this one become in its split number `split`: one object for all.
  std::shared_ptr<Group> part(int64_t split, int color, const std::vector<int>& members);

 private:
  // A key is the rank that sends, the one that receives, channel and number; -1 and -1 stand for what the
  // whole group does.
  using Key = std::tuple<int, int, int, int64_t>;
  Key next_key(int rank, const Collective& collective);
  std::string mismatch(const Slot& slot, int party, const Collective& collective, const Key& key) const;

  std::shared_ptr<World> world_;
  std::vector<int> members_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int, int>, int64_t> started_;  // by rank, from, to and channel
  std::map<Key, std::shared_ptr<Slot>> slots_;                 // those that not all have started
  struct Part {
    std::shared_ptr<Group> group;
    int taken = 0;
  };
  std::map<std::pair<int64_t, int>, Part> parts_;  // by number of the split and color
};

}  // namespace vitrail::threads
