#include "train/replica_check.h"

#include <algorithm>
#include <map>

#include "train/bulk_hash.h"
#include "train/rank_facts.h"

namespace vitrail {

namespace {

bool is_compared(const PersistentValue& value) {
  return value.category != Category::kGradients && value.category != Category::kStaging &&
         !value.is_container;
}

// Returns the ranks of a group whose hash is not that of more than half of it; empty where there is no such
// half.
std::vector<int> odd_ones(const std::vector<int>& group, const std::map<int64_t, std::vector<int>>& by_hash) {
  const auto most = std::max_element(by_hash.begin(), by_hash.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  std::vector<int> odd;
  if (2 * most->second.size() > group.size())
    std::ranges::set_difference(group, most->second, std::back_inserter(odd));
  return odd;
}

}  // namespace

// Devices of several kinds round an update differently, so replicas are those on one kind.
ReplicaCheck::ReplicaCheck(const TrainStep& step, const Team& team) : step_(step), team_(team) {
  const std::vector<std::string> kinds = team.texts_of_all(kernel_facts(step.rank().device).kind);
  const PartTable& parts = step.whole().table();
  // Those of all ranks: the stages of a pipeline hold other values.
  const std::vector<PersistentValue>& values = step.whole().values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_compared(values[i])) continue;
    Compared compared{i, {}};
    for (const std::vector<int>& holders : parts.holders(i)) {
      std::map<std::string, std::vector<int>> by_kind;
      for (const int rank : holders) by_kind[kinds[static_cast<size_t>(rank)]].push_back(rank);
      for (auto& [kind, group] : by_kind)
        if (group.size() > 1) compared.groups.push_back(std::move(group));
    }
    if (!compared.groups.empty()) values_.push_back(std::move(compared));
  }
}

const PersistentValue* ReplicaCheck::held_here(const Compared& value) const {
  const std::string& name = step_.whole().values()[value.index].name;
  const PersistentLayout& layout = step_.store().layout();
  return layout.has(name) ? &layout.at(name) : nullptr;
}

size_t ReplicaCheck::bytes() const {
  size_t bytes = 0;
  for (const Compared& value : values_)
    if (const PersistentValue* held = held_here(value)) bytes += held->desc.bytes();
  return bytes;
}

// A device with memory of its own hands its values over one at a time.
std::vector<int64_t> ReplicaCheck::hashes() const {
  std::vector<int64_t> hashes(values_.size());
  const PersistentStore& store = step_.store();
  const auto hash = [&](size_t i, std::vector<std::byte>* copy) {
    const PersistentValue* value = held_here(values_[i]);
    if (!value) return;
    const TensorView view = store.view(*value);
    std::span<const std::byte> bytes{static_cast<const std::byte*>(view.data()), value->desc.bytes()};
    if (copy && !store.is_at_hand(*value)) {
      copy->resize(bytes.size());
      store.read(*value, *copy);
      bytes = *copy;
    }
    hashes[i] = static_cast<int64_t>(bulk_hash(bytes));
  };
  if (store.rank().hardware->shares_host_memory()) {
    store.rank().pool.run(static_cast<int64_t>(hashes.size()),
                          [&](int64_t i, int) { hash(static_cast<size_t>(i), nullptr); });
    return hashes;
  }
  std::vector<std::byte> copy;
  for (size_t i = 0; i < hashes.size(); ++i) hash(i, &copy);
  return hashes;
}

std::optional<ReplicaDifference> ReplicaCheck::compare() const {
  const std::vector<int64_t> all = team_.gather(hashes());
  std::optional<ReplicaDifference> first;
  size_t differing = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    bool differs = false;
    for (const std::vector<int>& group : values_[i].groups) {
      std::map<int64_t, std::vector<int>> by_hash;
      for (const int rank : group)
        by_hash[all[static_cast<size_t>(rank) * values_.size() + i]].push_back(rank);
      if (by_hash.size() == 1) continue;
      differs = true;
      if (!first) first = {step_.whole().values()[values_[i].index].name, group, odd_ones(group, by_hash)};
    }
    differing += differs;
  }
  if (first) first->values = differing;
  return first;
}

}  // namespace vitrail
