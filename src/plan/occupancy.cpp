#include "plan/occupancy.h"

#include <algorithm>
#include <iterator>

namespace vitrail {

Occupancy::Occupancy(int moments) {
  while (leaves_ < moments) leaves_ *= 2;
  branches_.resize(2 * static_cast<size_t>(leaves_));
}

// Visits the tree: `whole` for the fewest branches that make up the moments, `part` for all above them.
template <typename Whole, typename Part>
void Occupancy::visit(int first, int last, const Whole& whole, const Part& part) {
  const auto go = [&](const auto& self, size_t branch, int begin, int end) -> void {
    if (last < begin || end <= first) return;
    if (first <= begin && end - 1 <= last) return whole(branches_[branch]);
    part(branches_[branch]);
    const int middle = begin + (end - begin) / 2;
    self(self, 2 * branch, begin, middle);
    self(self, 2 * branch + 1, middle, end);
  };
  go(go, 1, 0, leaves_);
}

void Occupancy::add(Ranges& ranges, size_t begin, size_t end) {
  auto next = ranges.upper_bound(begin);
  if (next != ranges.begin() && std::prev(next)->second >= begin) --next;
  while (next != ranges.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ranges.erase(next);
  }
  ranges.emplace(begin, end);
}

void Occupancy::take(int first, int last, size_t begin, size_t end) {
  visit(
      first, last,
      [&](Branch& branch) {
        add(branch.all_through, begin, end);
        add(branch.ever, begin, end);
      },
      [&](Branch& branch) { add(branch.ever, begin, end); });
}

size_t Occupancy::next_free(const Ranges& ranges, size_t offset, size_t bytes) {
  auto next = ranges.upper_bound(offset);
  if (next != ranges.begin() && std::prev(next)->second > offset) --next;
  for (; next != ranges.end() && next->first < offset + bytes; ++next, ++steps_) offset = next->second;
  return offset;
}

size_t Occupancy::lowest_free(int first, int last, size_t bytes) {
  std::vector<const Ranges*> concerned;
  visit(
      first, last, [&](const Branch& branch) { concerned.push_back(&branch.ever); },
      [&](const Branch& branch) { concerned.push_back(&branch.all_through); });
  size_t offset = 0;
  for (size_t agreed = 0; agreed < concerned.size();) {
    for (const Ranges* ranges : concerned) {
      const size_t free = next_free(*ranges, offset, bytes);
      agreed = free == offset ? agreed + 1 : 1;
      offset = free;
      ++steps_;
      if (agreed == concerned.size()) break;
    }
  }
  return offset;
}

}  // namespace vitrail
