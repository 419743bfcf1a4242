#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "data/fake_dataset.h"

namespace vitrail {
namespace {

std::vector<int64_t> order_of(const Sampler& sampler, int64_t epoch, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = sampler.sample_at(epoch, i);
  return order;
}

std::vector<int64_t> sorted(std::vector<int64_t> order) {
  std::ranges::sort(order);
  return order;
}

std::vector<int64_t> counting(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Sampler, PermutesEverySize) {
  for (int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 100, 255, 256, 257, 1000, 4097})
    for (uint64_t key : {1u, 2u, 99u}) {
      std::vector<int64_t> image;
      for (int64_t i = 0; i < size; ++i) image.push_back(permuted(key, size, i));
      ASSERT_EQ(sorted(image), counting(size)) << size;
    }
}

// Each sample is equally likely at each place, and neighbours do not stay neighbours.
TEST(Sampler, ShufflesEvenly) {
  constexpr int64_t kSize = 10, kOrders = 5000;
  std::vector<int> counts(kSize * kSize);
  int neighbours = 0;
  for (int64_t key = 0; key < kOrders; ++key)
    for (int64_t i = 0; i < kSize; ++i) {
      const int64_t at = permuted(static_cast<uint64_t>(key) * 77, kSize, i);
      ++counts[static_cast<size_t>(i * kSize + at)];
      if (i > 0) neighbours += permuted(static_cast<uint64_t>(key) * 77, kSize, i - 1) + 1 == at;
    }
  for (int count : counts) EXPECT_NEAR(count, 500, 110);  // five deviations
  EXPECT_NEAR(neighbours, 0.9 * kOrders, 400);            // 9 places, each with probability 9 / (10 * 9)
}

TEST(Sampler, EveryEpochShowsEverySampleOnceInItsOwnOrder) {
  const test::FakeDataset data(101, 3);
  const Sampler sampler(data, Order::kShuffled, 5), other(data, Order::kShuffled, 6);
  std::set<std::vector<int64_t>> orders = {counting(101)};
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(sorted(order_of(sampler, epoch, 101)), counting(101));
    orders.insert(order_of(sampler, epoch, 101));
    orders.insert(order_of(other, epoch, 101));
  }
  EXPECT_EQ(orders.size(), 11u);
  // A second pass within an epoch has an order of its own.
  const std::vector<int64_t> twice = order_of(sampler, 0, 202);
  const std::vector<int64_t> second(twice.begin() + 101, twice.end());
  EXPECT_EQ(sorted(second), counting(101));
  EXPECT_NE(second, order_of(sampler, 0, 101));
}

TEST(Sampler, RepeatsFollowEachOther) {
  const test::FakeDataset data(30, 3);
  const Sampler sampler(data, Order::kShuffled, 5, 3);
  const std::vector<int64_t> order = order_of(sampler, 2, 30);
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(order[i], order[i / 3 * 3]);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 10u);
}

TEST(Sampler, BalancedShowsClassesEquallyOften) {
  test::FakeDataset data(90, 4);
  // 80 samples of class 0, 7 of class 1, 3 of class 3, none of class 2.
  for (int64_t i = 0; i < 90; ++i) data.set_labels(i, {i < 80 ? 0 : i < 87 ? 1 : 3});
  const Sampler sampler(data, Order::kBalanced, 5);
  std::vector<int> classes(4), samples(90);
  for (int64_t sample : order_of(sampler, 1, 90)) {
    ++classes[static_cast<size_t>(data.labels(sample)[0])];
    ++samples[static_cast<size_t>(sample)];
  }
  EXPECT_EQ(classes, (std::vector<int>{30, 30, 0, 30}));
  for (size_t i = 0; i < 80; ++i) EXPECT_LE(samples[i], 1);
  for (size_t i = 80; i < 87; ++i) EXPECT_NEAR(samples[i], 30.0 / 7, 1);  // by turns
  for (size_t i = 87; i < 90; ++i) EXPECT_EQ(samples[i], 10);
  EXPECT_NE(order_of(sampler, 1, 90), order_of(sampler, 2, 90));
}

// Every sample of a class once, then all of them again in another order.
TEST(Sampler, BalancedShowsAClassInANewOrderEveryTimeAround) {
  const test::FakeDataset data(16, 2);
  const Sampler sampler(data, Order::kBalanced, 5);
  for (const int32_t label : {0, 1})
    for (const int64_t epoch : {0, 1}) {
      std::vector<int64_t> seen;
      for (int64_t position = 0; position < 32; ++position) {
        const int64_t sample = sampler.sample_at(epoch, position);
        if (data.labels(sample)[0] == label) seen.push_back(sample);
      }
      ASSERT_EQ(seen.size(), 16u);
      const std::vector<int64_t> first(seen.begin(), seen.begin() + 8), second(seen.begin() + 8, seen.end());
      EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 8u);
      EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 8u);
      EXPECT_NE(first, second);
    }
  EXPECT_NE(sampler.sample_at(0, 0) * 100 + sampler.sample_at(0, 2),
            sampler.sample_at(1, 0) * 100 + sampler.sample_at(1, 2));
}

TEST(Sampler, BalancedRefusesSeveralLabels) {
  test::FakeDataset data(4, 2);
  data.set_multi_label();
  EXPECT_EQ(test::error_of([&] { Sampler(data, Order::kBalanced, 0); }).kind(), ErrorKind::kConfig);
}

TEST(Sampler, SequentialEndsAtTheEnd) {
  const test::FakeDataset data(5, 2);
  const Sampler sampler(data, Order::kSequential, 9);
  EXPECT_EQ(order_of(sampler, 3, 7), (std::vector<int64_t>{0, 1, 2, 3, 4, -1, -1}));
}

TEST(Sampler, CountsWholeSteps) {
  EXPECT_EQ(steps_per_epoch(100, 32), 3);
  EXPECT_EQ(steps_per_epoch(96, 32), 3);
  EXPECT_EQ(steps_per_epoch(5, 32), 1);
  EXPECT_EQ(test::error_of([] { steps_per_epoch(0, 32); }).kind(), ErrorKind::kConfig);
}

}  // namespace
}  // namespace vitrail
