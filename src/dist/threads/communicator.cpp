// A communicator among threads of one process, whose ranks read each other's memory.
#include "dist/communicator.h"

#include <algorithm>
#include <numeric>

#include "dist/threads/group.h"
#include "dist/transport.h"

namespace vitrail {

namespace threads {
namespace {

class PendingCollective;

// Holds what a rank has on its way in all of its groups: a rank that waits for one moves all of them on,
// since others may wait for its share of any. It is used by the rank's own thread alone.
struct Rank {
  int number = 0;  // in the world
  std::vector<PendingCollective*> on_its_way;
  void move_on();
};

// A collective of one rank from its start to its completion.
class PendingCollective : public Pending {
 public:
  PendingCollective(std::shared_ptr<Group> group, std::shared_ptr<Rank> rank, const Collective& c,
                    int group_rank)
      : group_(std::move(group)), rank_(std::move(rank)), seat_(group_->enter(group_rank, c)) {
    rank_->on_its_way.push_back(this);
  }
  ~PendingCollective() override {
    leave();
    if (seat_.slot->detached() || seat_.slot->complete()) return;
    // Somebody may be reading this rank's memory, and nobody may begin to.
    group_->fail(*seat_.slot, ErrorKind::kComm,
                 strf("rank %d left %s before it was complete", rank_->number,
                      to_string(seat_.slot->entry(seat_.party)).c_str()));
    wake();
    seat_.slot->wait_for_shares();
  }
  PendingCollective(const PendingCollective&) = delete;
  PendingCollective& operator=(const PendingCollective&) = delete;

  bool poll() override {
    if (finished_) return true;
    step();
    return finished_;
  }

  void wait() override {
    EventCount& events = group_->world().event_count(rank_->number);
    while (!finished_) {
      const uint32_t seen = events.value();
      rank_->move_on();
      if (!finished_) group_->world().wait(rank_->number, seen);
    }
  }

  // Does this rank's share as soon as all have started, and sees whether all have done theirs.
  void step() {
    Slot& slot = *seat_.slot;
    if (!did_share_ && slot.ready() && slot.begin_share(group_->world().aborted_flag())) {
      do_share(slot, seat_.party);
      did_share_ = true;
      if (slot.end_share() && !slot.detached()) wake();
    }
    group_->world().throw_if_aborted();
    finished_ = slot.detached() ? did_share_ : slot.complete();
    if (!finished_ && slot.failed()) group_->throw_why(slot);
  }
  bool finished() const { return finished_; }

 private:
  void leave() { std::erase(rank_->on_its_way, this); }
  void wake() {
    for (int member : seat_.ranks)
      if (member != rank_->number) group_->world().event_count(member).notify();
  }

  std::shared_ptr<Group> group_;
  std::shared_ptr<Rank> rank_;
  Group::Seat seat_;
  bool did_share_ = false, finished_ = false;
};

void Rank::move_on() {
  for (PendingCollective* one : on_its_way) one->step();
  std::erase_if(on_its_way, [](const PendingCollective* one) { return one->finished(); });
}

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, std::shared_ptr<Rank> rank, int group_rank)
      : group_(std::move(group)), rank_(std::move(rank)), group_rank_(group_rank) {}

  int rank() const override { return group_rank_; }
  int size() const override { return group_->size(); }
  const char* transport() const override { return "threads"; }

  std::unique_ptr<Pending> start(const Collective& collective) override {
    check_collective(collective, group_rank_, size());
    group_->world().throw_if_aborted();
    return std::make_unique<PendingCollective>(group_, rank_, collective, group_rank_);
  }
  void poll() override { rank_->move_on(); }

  std::unique_ptr<Communicator> split(int color, int key) override {
    struct ColorKey {
      int color, key;
    };
    std::vector<ColorKey> keys(static_cast<size_t>(size()));
    ColorKey& own = keys[static_cast<size_t>(group_rank_)];
    own = {color, key};
    run({.kind = Collective::Kind::kAllGather,
         .dtype = DType::kU8,
         .in = &own,
         .out = keys.data(),
         .counts = std::vector<size_t>(keys.size(), sizeof(ColorKey))});
    std::vector<int> members;
    for (int r = 0; r < size(); ++r)
      if (keys[static_cast<size_t>(r)].color == color) members.push_back(r);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return keys[static_cast<size_t>(a)].key < keys[static_cast<size_t>(b)].key;
    });
    const auto place = std::find(members.begin(), members.end(), group_rank_) - members.begin();
    return std::make_unique<ThreadCommunicator>(group_->part(splits_++, color, members), rank_,
                                                static_cast<int>(place));
  }
  void abort(const std::string& why) override { group_->world().abort(why); }
  std::string failure() const override { return group_->world().failure(); }

 private:
  std::shared_ptr<Group> group_;
  std::shared_ptr<Rank> rank_;
  int group_rank_;
  int64_t splits_ = 0;
};

}  // namespace
}  // namespace threads

std::vector<std::unique_ptr<Communicator>> thread_communicators(int size) {
  VT_CHECK(size > 0, "a group of %d ranks", size);
  const auto world = std::make_shared<threads::World>(size);
  std::vector<int> members(static_cast<size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  const auto group = std::make_shared<threads::Group>(world, members);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r) {
    auto rank = std::make_shared<threads::Rank>();
    rank->number = r;
    ranks.push_back(std::make_unique<threads::ThreadCommunicator>(group, std::move(rank), r));
  }
  return ranks;
}

}  // namespace vitrail
