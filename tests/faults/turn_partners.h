// Ranks as threads that take turns: each runs until it exchanges texts with the others. So whatever they do
// to files has one order, the same every time.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "io/checkpoint/partners.h"

namespace vitrail::testing {

class Turns {
 public:
  explicit Turns(int ranks) : ranks_(ranks) {
    for (auto& texts : texts_) texts.resize(static_cast<size_t>(ranks));
  }

  void begin(int rank) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return turn_ == rank; });
  }
  void pass_on(int rank) {
    const std::lock_guard lock(mutex_);
    turn_ = (rank + 1) % ranks_;
    moved_.notify_all();
  }
  // `round` is the number of exchanges of this rank before.
  std::vector<std::string> exchange(int rank, size_t round, const std::string& text) {
    texts_[round % 2][static_cast<size_t>(rank)] = text;
    pass_on(rank);
    begin(rank);
    return texts_[round % 2];
  }
  int ranks() const { return ranks_; }

 private:
  int ranks_, turn_ = 0;
  std::array<std::vector<std::string>, 2> texts_;
  std::mutex mutex_;
  std::condition_variable moved_;
};

class TurnPartners : public Partners {
 public:
  TurnPartners(Turns& turns, int rank) : turns_(turns), rank_(rank) { turns_.begin(rank); }
  TurnPartners(const TurnPartners&) = delete;
  TurnPartners& operator=(const TurnPartners&) = delete;
  ~TurnPartners() override { turns_.pass_on(rank_); }
  int rank() const override { return rank_; }
  int size() const override { return turns_.ranks(); }
  std::vector<std::string> from_all(const std::string& mine) override {
    return turns_.exchange(rank_, round_++, mine);
  }

 private:
  Turns& turns_;
  int rank_;
  size_t round_ = 0;
};

// Calls `body` on every rank; returns what each of them threw, null for nothing.
inline std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(Partners&)>& body) {
  Turns turns(ranks);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      TurnPartners partners(turns, rank);
      try {
        body(partners);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace vitrail::testing
