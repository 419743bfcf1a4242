#include "data/sampler.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "data/augment/draw.h"

namespace vitrail {
namespace {

constexpr int kRounds = 6;

// Sorts samples by class; classes without samples are left out.
void group_by_class(const Dataset& dataset, std::vector<int64_t>& samples, std::vector<int64_t>& starts) {
  std::vector<std::vector<int64_t>> members(dataset.classes().size());
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (int32_t label : dataset.labels(i)) {
      VT_REQUIRE(label >= 0 && label < std::ssize(members), ErrorKind::kData,
                 "%s has label %d: expected one of the %zu classes", dataset.sample_name(i).c_str(), label,
                 members.size());
      members[static_cast<size_t>(label)].push_back(i);
    }
  for (const std::vector<int64_t>& of_class : members) {
    if (of_class.empty()) continue;
    starts.push_back(std::ssize(samples));
    samples.insert(samples.end(), of_class.begin(), of_class.end());
  }
  starts.push_back(std::ssize(samples));
}

}  // namespace

int64_t permuted(uint64_t key, int64_t size, int64_t index) {
  VT_CHECK(index >= 0 && index < size, "%lld of %lld", static_cast<long long>(index),
           static_cast<long long>(size));
  // Each half of the Feistel network has at least two bits, since smaller ones hardly mix.
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(size - 1)));
  const int half = std::max(2, (bits + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto at = static_cast<uint64_t>(index);
  do {
    uint64_t left = at >> half, right = at & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (counter_hash(counter_hash(key, round), right) & mask);
      left = right;
      right = mixed;
    }
    at = left << half | right;
  } while (at >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(at);
}

Sampler::Sampler(const Dataset& dataset, Order order, uint64_t seed, int64_t repeats)
    : order_(order), seed_(seed), size_(dataset.size()), repeats_(repeats) {
  VT_REQUIRE(size_ > 0, ErrorKind::kData, "the dataset has no samples");
  VT_REQUIRE(repeats >= 1, ErrorKind::kConfig, "repeats is %lld: expected at least 1",
             static_cast<long long>(repeats));
  if (order_ != Order::kBalanced) return;
  VT_REQUIRE(!dataset.multi_label(), ErrorKind::kConfig,
             "balanced sampling needs one label a sample; this set has several");
  group_by_class(dataset, by_class_, class_starts_);
}

int64_t Sampler::sample_at(int64_t epoch, int64_t position) const {
  if (order_ == Order::kSequential) return position < size_ ? position : -1;
  const int64_t turn = position / repeats_;
  if (order_ == Order::kBalanced) return balanced(epoch, turn);
  return permuted(draw_key(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(turn / size_), "order"),
                  size_, turn % size_);
}

// In every round each class has one turn; in its r-th round a class shows the r-th sample of its own order.
int64_t Sampler::balanced(int64_t epoch, int64_t turn) const {
  const auto key = [&](int64_t place, const char* op) {
    return draw_key(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(place), op);
  };
  const int64_t classes = std::ssize(class_starts_) - 1;
  const int64_t round = turn / classes;
  const auto chosen = static_cast<size_t>(permuted(key(round, "class order"), classes, turn % classes));
  const int64_t start = class_starts_[chosen], count = class_starts_[chosen + 1] - start;
  const uint64_t order = counter_hash(key(round / count, "order in class"), chosen);
  return by_class_[static_cast<size_t>(start + permuted(order, count, round % count))];
}

int64_t steps_per_epoch(int64_t size, int64_t global_batch) {
  VT_REQUIRE(size > 0 && global_batch > 0, ErrorKind::kConfig,
             "%lld samples in batches of %lld: both must be at least 1", static_cast<long long>(size),
             static_cast<long long>(global_batch));
  return std::max<int64_t>(size / global_batch, 1);
}

}  // namespace vitrail
