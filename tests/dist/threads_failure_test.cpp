// What rank threads see when one of them fails, differs or leaves.
#include <array>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "dist/threads/slot.h"
#include "ranks.h"
#include "thrown.h"
#include "values.h"

namespace vitrail {

namespace {
using Kind = Collective::Kind;

// The errors of all ranks that `body` ends with, by rank.
std::vector<std::pair<ErrorKind, std::string>> errors_of(int size, const RankBody& body) {
  std::vector<std::pair<ErrorKind, std::string>> errors(static_cast<size_t>(size), {ErrorKind::kStopped, ""});
  run_on_threads(size, [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const Error& error) {
      errors[static_cast<size_t>(comm.rank())] = {error.kind(), error.message()};
    }
  });
  return errors;
}

Collective sum_of(std::vector<float>& values) {
  return {.kind = Kind::kAllReduce, .in = values.data(), .out = values.data(), .counts = {values.size()}};
}

TEST(ThreadsFailure, AbortReachesAllWhoWait) {
  const auto errors = errors_of(4, [](Communicator& comm) {
    std::vector<float> values(1000);
    const auto pending = comm.rank() == 2 ? nullptr : comm.start(sum_of(values));
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others sleep by then
      comm.abort("rank 2: the disk is full");
      comm.abort("a later reason");
      comm.barrier();
    }
    pending->wait();
  });
  for (const auto& [kind, text] : errors) {
    EXPECT_EQ(kind, ErrorKind::kComm);
    EXPECT_EQ(text, "rank 2: the disk is full");
  }
}

TEST(ThreadsFailure, AbortReachesOtherGroupsAndLaterStarts) {
  const auto errors = errors_of(4, [](Communicator& comm) {
    const auto part = comm.split(comm.rank() / 2, comm.rank());
    if (comm.rank() == 0) part->abort("gone");
    if (comm.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (;;) part->barrier();
  });
  for (const auto& [kind, text] : errors) EXPECT_EQ(text, "gone");
}

TEST(ThreadsFailure, AbortFromAThreadThatIsNoRank) {
  const auto errors = errors_of(2, [&](Communicator& comm) {
    const std::jthread watcher([&, first = comm.rank() == 0] {
      if (first) comm.abort("deadline");
    });
    std::vector<float> values(100000);
    for (;;) comm.run(sum_of(values));
  });
  for (const auto& [kind, text] : errors) EXPECT_EQ(text, "deadline");
}

// Memory is freed at once by those who failed, while others may be in the middle of a sum.
TEST(ThreadsFailure, MemoryMayGoAfterAnAbort) {
  for (int round = 0; round < 20; ++round)
    errors_of(3, [&](Communicator& comm) {
      std::vector<std::unique_ptr<std::vector<float>>> values;
      std::vector<std::unique_ptr<Pending>> pending;
      for (int i = 0; i < 8; ++i) {
        values.push_back(std::make_unique<std::vector<float>>(50000));
        pending.push_back(comm.start(sum_of(*values.back())));
      }
      if (comm.rank() == 1) {
        for (int i = 0; i < round % 5; ++i) comm.poll();
        comm.abort("now");
      }
      for (auto& one : pending) one->wait();
    });
}

TEST(ThreadsFailure, WhoLeavesIsNamed) {
  const auto errors = errors_of(2, [](Communicator& comm) {
    std::vector<float> values(1025);
    const auto pending = comm.start(sum_of(values));
    if (comm.rank() == 0) pending->wait();
  });
  EXPECT_EQ(errors[0].first, ErrorKind::kComm);
  EXPECT_EQ(errors[0].second, "rank 1 left all-reduce of f32 [1025] before it was complete");
}

void expect_mismatch(const std::function<Collective(int)>& of_rank, const std::vector<std::string>& names) {
  const auto errors = errors_of(3, [&](Communicator& comm) {
    comm.barrier();
    comm.run(of_rank(comm.rank()));
  });
  for (const auto& [kind, text] : errors) {
    EXPECT_EQ(kind, ErrorKind::kInternal) << text;
    EXPECT_NE(text.find("collective 1: rank "), std::string::npos) << text;
    for (const std::string& name : names) EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

TEST(ThreadsFailure, AnotherCollectiveIsTold) {
  static std::array<char, 256> memory;
  const auto with = [](Kind kind, DType dtype, std::vector<size_t> counts, int peer = 0) {
    return Collective{kind, dtype, memory.data(), memory.data(), std::move(counts), peer};
  };
  expect_mismatch(
      [&](int rank) { return rank == 1 ? Collective{} : with(Kind::kBroadcast, DType::kF32, {4}); },
      {"rank 1 started barrier", "started broadcast of f32 [4] from rank 0"});
  expect_mismatch([&](int rank) { return with(Kind::kAllReduce, rank ? DType::kF32 : DType::kF64, {4}); },
                  {"rank 0 started all-reduce of f64 [4]", "started all-reduce of f32 [4]"});
  expect_mismatch([&](int rank) { return with(Kind::kAllReduce, DType::kF32, {rank == 2 ? 5u : 4u}); },
                  {"rank 2 started all-reduce of f32 [5]"});
  expect_mismatch([&](int rank) { return with(Kind::kBroadcast, DType::kF32, {4}, rank == 2); },
                  {"from rank 0", "from rank 1"});
  expect_mismatch(
      [&](int rank) {
        return with(Kind::kAllToAll, DType::kU8, {1, 1, rank == 0 ? 2u : 1u, 1, 1, 1});
      },
      {"rank 0 started all-to-all of u8 [1 1 2 1 1 1]", "rank 2 started"});
}

TEST(ThreadsFailure, TheFirstReasonOfACollectiveStays) {
  threads::Slot slot(2);
  const std::atomic<bool> aborted = false;
  EXPECT_FALSE(slot.failed());
  EXPECT_NO_THROW(slot.throw_if_failed());
  EXPECT_TRUE(slot.begin_share(aborted));
  EXPECT_FALSE(slot.end_share());
  slot.fail(ErrorKind::kDeadline, "rank 1 is late");
  slot.fail(ErrorKind::kInternal, "a later reason");
  EXPECT_TRUE(slot.failed());
  EXPECT_EQ(thrown_by([&] { slot.throw_if_failed(); }), "deadline: rank 1 is late");
  EXPECT_FALSE(slot.begin_share(aborted)) << "no share begins after it";
  slot.wait_for_shares();
  EXPECT_FALSE(slot.complete());
}

TEST(ThreadsFailure, ImpossibleCollectivesAreRefused) {
  const auto ranks = thread_communicators(2);
  float value = 0;
  EXPECT_THROW(ranks[0]->start({.kind = Kind::kAllReduce, .counts = {1, 2}}), Error);
  EXPECT_THROW(ranks[0]->start({.kind = Kind::kAllReduce, .dtype = DType::kU8, .in = &value, .counts = {1}}),
               Error);
  EXPECT_THROW(ranks[0]->start({.kind = Kind::kSend, .in = &value, .counts = {1}, .peer = 0}), Error);
  EXPECT_THROW(ranks[0]->start({.kind = Kind::kBroadcast, .out = &value, .counts = {1}, .peer = 2}), Error);
}
}  // namespace

}  // namespace vitrail
