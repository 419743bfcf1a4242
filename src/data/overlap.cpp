#include "data/overlap.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/rng.h"

namespace vitrail {

namespace {

// Returns nothing for an empty file, too: all of them would be the same image.
std::optional<uint64_t> mark_key(const Dataset& data, int64_t index) {
  const std::optional<uint64_t> key = contents_key(data, index);
  return key == name_key("") ? std::nullopt : key;
}

// Pixels that are stored as such have been read already.
bool is_decodable(const Dataset& data, int64_t index) try {
  if (data.encoded(index)) data.load(index, 1);
  return true;
} catch (const Error&) {
  return false;
}

struct Candidates {
  std::vector<int64_t> images;
  int64_t one_in = 1;  // the share that they are of all candidates
};

// Lists the images of these sizes, an even share of them where they are too many.
Candidates images_of_sizes(const std::unordered_set<uint64_t>& sizes, const Dataset& data,
                           SearchLimits limits) {
  constexpr uint64_t kUnknownBytes = uint64_t{64} << 10;  // assumed for images of unknown size
  const int64_t step = 1 + std::max<int64_t>(0, data.size() - 1) / limits.images;
  std::vector<int64_t> all;
  uint64_t total_bytes = 0;
  for (int64_t i = 0; i < data.size(); i += step) {
    const uint64_t bytes = data.stored_bytes(i);
    if (!sizes.contains(bytes)) continue;
    all.push_back(i);
    total_bytes += bytes ? bytes : kUnknownBytes;
  }
  const uint64_t stride = 1 + total_bytes / limits.bytes;
  Candidates some{.images = {}, .one_in = step * static_cast<int64_t>(stride)};
  for (size_t i = 0; i < all.size(); i += stride) some.images.push_back(all[i]);
  return some;
}

}  // namespace

std::vector<ImageMark> marks_of(const Dataset& data, int64_t most) {
  const int64_t count = std::min(data.size(), most);
  std::vector<ImageMark> marks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = (2 * i + 1) * data.size() / (2 * count);  // the centres of equal parts
    if (const auto key = mark_key(data, index)) marks.push_back({data.stored_bytes(index), *key});
  }
  return marks;
}

double Overlap::share() const {
  if (looked_at == 0) return 0;
  return std::min(1.0, static_cast<double>(found * one_in) / static_cast<double>(looked_at));
}

MarkSearch search_marks(const std::vector<ImageMark>& marks, const Dataset& data, SearchLimits limits) {
  std::unordered_set<uint64_t> sizes;
  std::unordered_map<uint64_t, int64_t> wanted;
  for (const ImageMark& mark : marks) {
    sizes.insert(mark.bytes);
    ++wanted[mark.key];
  }
  const Candidates candidates = images_of_sizes(sizes, data, limits);
  MarkSearch search{.overlap = {.looked_at = static_cast<int64_t>(marks.size()), .one_in = candidates.one_in},
                    .missing = {}};
  for (const int64_t index : candidates.images) {
    const auto key = mark_key(data, index);
    const auto found = key ? wanted.find(*key) : wanted.end();
    if (found == wanted.end() || !is_decodable(data, index)) continue;
    search.overlap.found += found->second;
    wanted.erase(found);
  }
  for (const ImageMark& mark : marks)
    if (wanted.contains(mark.key)) search.missing.push_back(mark);
  return search;
}

Overlap find_marks(const std::vector<ImageMark>& marks, const Dataset& data, SearchLimits limits) {
  return search_marks(marks, data, limits).overlap;
}

Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most, SearchLimits limits) {
  return find_marks(marks_of(data, most), other, limits);
}

}  // namespace vitrail
