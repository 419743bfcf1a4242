// One collective of a group of rank threads, or one pair of send and receive: who has started it, who has
// done its share, and whether it failed; and what that share is. Wakes nobody and waits for no start.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/communicator.h"

namespace vitrail::threads {

class Slot {
 public:
  explicit Slot(int parties) : entries_(static_cast<size_t>(parties)) {}

  int parties() const { return static_cast<int>(entries_.size()); }
  const Collective& entry(int party) const { return entries_[static_cast<size_t>(party)]; }
  const std::vector<Collective>& entries() const { return entries_; }

  // Puts a party's side down; called under the group's lock. Returns true for the last one. Of what is small
  // the input is kept here.
  bool publish(int party, const Collective& collective);
  const std::vector<int>& published() const { return order_; }  // under the group's lock
  bool ready() const { return published_.load() == parties(); }
  // Returns whether all inputs are kept here: no party touches another's memory, and each is complete with
  // its own share.
  bool detached() const { return detached_; }

  // A party does its share between these two. begin_share() is false when the collective has failed or
  // `aborted`; end_share() is true for the last one.
  bool begin_share(const std::atomic<bool>& aborted);
  bool end_share();
  bool complete() const { return done_.load() == parties(); }

  // The first failure stays; no share begins after it. Called under the group's lock.
  void fail(ErrorKind kind, const std::string& why);
  bool failed() const { return failed_.load(); }
  void throw_if_failed() const;
  // Returns when no party is inside its share: the memory of a failed collective is free to go.
  void wait_for_shares() const;

 private:
  std::vector<Collective> entries_;  // by party; each written before it is counted in published_
  std::vector<std::vector<char>> kept_;
  bool detached_ = false;  // the same for every party of one collective
  std::vector<int> order_;
  std::atomic<int> published_{0}, done_{0}, busy_{0};
  std::atomic<bool> failed_{false};
  ErrorKind kind_ = ErrorKind::kComm;  // written before failed_
  std::string why_;
};

// Does the share of `party` in what all have started: it reads the others' memory and writes its own, or a
// piece of everybody's that is its own. No byte is written by one party and touched by another.
void do_share(const Slot& slot, int party);

}  // namespace vitrail::threads
