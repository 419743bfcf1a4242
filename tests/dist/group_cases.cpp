// Many collectives at once, groups of groups, and barriers.
#include <algorithm>

#include "ranks.h"
#include "values.h"

namespace vitrail {

namespace {
using Kind = Collective::Kind;

constexpr int kMany = 24;

Collective sum_in_place(Values& values) {
  return {.kind = Kind::kAllReduce,
          .dtype = values.dtype(),
          .in = values.data(),
          .out = values.data(),
          .counts = {values.count()}};
}

// Even ranks wait in the order of the starts and odd ones in reverse: each must move on what it does not wait
// for.
void many_at_once(Communicator& comm) {
  std::vector<Values> values;
  values.reserve(kMany);
  for (int i = 0; i < kMany; ++i) values.emplace_back(DType::kF32, static_cast<size_t>(i * 331 % 4000), i);
  std::vector<std::unique_ptr<Pending>> pending;
  pending.reserve(values.size());
  for (Values& one : values) pending.push_back(comm.start(sum_in_place(one)));
  if (comm.rank() % 2) std::reverse(pending.begin(), pending.end());
  for (auto& one : pending) one->wait();
  for (auto& one : pending) EXPECT_TRUE(one->poll());
  for (int i = 0; i < kMany; ++i) {
    Values want(DType::kF32, values[static_cast<size_t>(i)].count(), i * comm.size());
    expect_equal(values[static_cast<size_t>(i)], want, "one of many");
  }
}

void by_polling(Communicator& comm) {
  Values own(DType::kI64, 5003, comm.rank() + 1),
      want(DType::kI64, 5003, comm.size() * (comm.size() + 1) / 2);
  const auto pending = comm.start(sum_in_place(own));
  while (!pending->poll()) comm.poll();
  expect_equal(own, want, "polled");
  pending->wait();
}

// Ranks of equal parity, in reversed order.
void split(Communicator& comm) {
  const auto part = comm.split(comm.rank() % 2, -comm.rank());
  const int members = (comm.size() + 1 - comm.rank() % 2) / 2;
  ASSERT_EQ(part->size(), members);
  EXPECT_EQ(part->rank(), members - 1 - comm.rank() / 2);
  EXPECT_STREQ(part->transport(), comm.transport());
  Values own(DType::kI32, 1009, comm.rank());
  part->run(sum_in_place(own));
  int sum = 0;
  for (int r = comm.rank() % 2; r < comm.size(); r += 2) sum += r;
  Values want(DType::kI32, 1009, sum);
  expect_equal(own, want, "sum in a part");
  const auto again = part->split(0, part->rank());
  EXPECT_EQ(again->rank(), part->rank());
  again->barrier();
}

// One rank waits in the part first and another in the whole first.
void parts_and_whole_at_once(Communicator& comm) {
  const auto part = comm.split(comm.rank() / 2, comm.rank());
  Values whole(DType::kF64, 4099, 1), half(DType::kF64, 4099, 1);
  auto first = comm.start(sum_in_place(whole));
  auto second = part->start(sum_in_place(half));
  if (comm.rank() % 2) std::swap(first, second);
  first->wait(), second->wait();
  Values want(DType::kF64, 4099, comm.size()), want_half(DType::kF64, 4099, part->size());
  expect_equal(whole, want, "whole");
  expect_equal(half, want_half, "part");
}

void barriers(Communicator& comm) {
  for (int i = 0; i < 200; ++i) {
    int64_t count = i;
    comm.barrier();
    comm.run({.kind = Kind::kAllReduce, .dtype = DType::kI64, .in = &count, .out = &count, .counts = {1}});
    ASSERT_EQ(count, static_cast<int64_t>(i) * comm.size());
  }
}
}  // namespace

std::vector<Case> group_cases() {
  return {{"ManyAtOnce", many_at_once},
          {"ByPolling", by_polling},
          {"Split", split},
          {"PartsAndWholeAtOnce", parts_and_whole_at_once},
          {"Barriers", barriers}};
}

std::vector<Case> all_cases() {
  std::vector<Case> all = sum_cases();
  for (auto list : {move_cases(), group_cases()}) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace vitrail
