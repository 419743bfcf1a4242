#include "data/overlap.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace vitrail {

std::vector<ImageMark> marks_of(const Dataset& data, int64_t most) {
  const int64_t count = std::min(data.size(), most);
  std::vector<ImageMark> marks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = (2 * i + 1) * data.size() / (2 * count);  // the centres of equal parts
    if (const auto key = contents_key(data, index)) marks.push_back({data.stored_bytes(index), *key});
  }
  return marks;
}

double Overlap::share() const {
  if (looked_at == 0) return 0;
  return std::min(1.0, static_cast<double>(found * one_in) / static_cast<double>(looked_at));
}

Overlap find_marks(const std::vector<ImageMark>& marks, const Dataset& data, uint64_t most_bytes) {
  constexpr uint64_t kUnknownBytes = uint64_t{64} << 10;  // assumed for images of unknown size
  std::unordered_set<uint64_t> sizes;
  std::unordered_map<uint64_t, int64_t> wanted;
  for (const ImageMark& mark : marks) {
    sizes.insert(mark.bytes);
    ++wanted[mark.key];
  }
  std::vector<int64_t> candidates;
  uint64_t total_bytes = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const uint64_t bytes = data.stored_bytes(i);
    if (!sizes.contains(bytes)) continue;
    candidates.push_back(i);
    total_bytes += bytes ? bytes : kUnknownBytes;
  }
  Overlap overlap{.looked_at = static_cast<int64_t>(marks.size()),
                  .one_in = 1 + static_cast<int64_t>(total_bytes / most_bytes)};
  for (size_t c = 0; c < candidates.size(); c += static_cast<size_t>(overlap.one_in)) {
    const auto key = contents_key(data, candidates[c]);
    const auto found = key ? wanted.find(*key) : wanted.end();
    if (found == wanted.end()) continue;
    overlap.found += found->second;
    wanted.erase(found);
  }
  return overlap;
}

Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most) {
  return find_marks(marks_of(data, most), other);
}

}  // namespace vitrail
