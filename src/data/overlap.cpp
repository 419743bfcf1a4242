#include "data/overlap.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/rng.h"

namespace vitrail {
namespace {

// Of one name; more would be images that are alike by name alone.
constexpr size_t kMostCandidates = 4;

// Of the last folder and the file: "train/cat/1.png" and "cat/1.png" are the same.
uint64_t place_key(const std::string& name) {
  const size_t file = name.rfind('/');
  const size_t folder = file == name.npos || file == 0 ? name.npos : name.rfind('/', file - 1);
  return name_key(std::string_view(name).substr(folder == name.npos ? 0 : folder + 1));
}

bool same_image(const Dataset& a, int64_t i, const Dataset& b, int64_t j) {
  try {
    const std::optional<std::string> first = a.encoded(i), second = b.encoded(j);
    if (first && second) return *first == *second;
    const Image left = a.load(i, 0), right = b.load(j, 0);
    return left.height == right.height && left.width == right.width && left.pixels == right.pixels;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    return false;
  }
}

}  // namespace

Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most) {
  Overlap overlap{.looked_at = std::min(data.size(), most)};
  const auto looked = [&](int64_t i) { return i * data.size() / overlap.looked_at; };
  std::unordered_map<uint64_t, std::vector<int64_t>> candidates;
  for (int64_t i = 0; i < overlap.looked_at; ++i) candidates[place_key(data.sample_name(looked(i)))];
  for (int64_t j = 0; j < other.size(); ++j) {
    const auto found = candidates.find(place_key(other.sample_name(j)));
    if (found != candidates.end() && found->second.size() < kMostCandidates) found->second.push_back(j);
  }
  for (int64_t i = 0; i < overlap.looked_at; ++i) {
    const std::vector<int64_t>& alike = candidates[place_key(data.sample_name(looked(i)))];
    overlap.found += std::any_of(alike.begin(), alike.end(),
                                 [&](int64_t j) { return same_image(data, looked(i), other, j); });
  }
  return overlap;
}

}  // namespace vitrail
