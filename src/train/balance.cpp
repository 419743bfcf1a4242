#include "train/balance.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "base/values.h"

namespace vitrail {

namespace {

constexpr const char* kAuto = "auto";

// "24" without blanks and brackets.
std::string bare(std::string_view text) {
  std::string word(text);
  std::erase_if(word, [](char c) { return c == ' ' || c == '[' || c == ']'; });
  return word;
}

int64_t sum_of_shares(const std::vector<int64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

std::vector<int64_t> cuts_of_shares(const std::vector<int64_t>& shares) {
  std::vector<int64_t> cuts = {0};
  for (const int64_t share : shares) cuts.push_back(cuts.back() + share);
  return cuts;
}

}  // namespace

std::vector<std::string> Balance::texts() const {
  if (measured) return {kAuto};
  std::vector<std::string> texts;
  for (const int64_t share : shares) texts.push_back(std::to_string(share));
  return texts;
}

Balance parse_balance(const std::vector<std::string>& texts) {
  Balance balance;
  for (const std::string& text : texts) {
    const bool all = text.find_first_of("[,") != std::string::npos || bare(text).empty();
    if (all || bare(text) == kAuto || balance.measured) balance = {};
    if (bare(text).empty()) continue;
    if (bare(text) == kAuto) {
      balance.measured = true;
      continue;
    }
    for (const std::string_view word : split(text, ',')) {
      const auto share = parse_integer(bare(word));
      if (!share || *share < 1 || *share > 1 << 20)
        throw Error(ErrorKind::kConfig,
                    strf("mesh.balance holds %s; expected whole numbers of images", quoted(text).c_str()),
                    "mesh.balance=auto, or a share for every rank along dp, as mesh.balance=[24,24,16]");
      balance.shares.push_back(*share);
    }
  }
  return balance;
}

std::string shares_text(const std::vector<int64_t>& shares) {
  std::string text;
  for (const int64_t share : shares) text += (text.empty() ? "" : ",") + std::to_string(share);
  return "[" + text + "]";
}

std::vector<int64_t> nearest_shares(const std::vector<int64_t>& shares, int64_t images, int64_t ranks,
                                    int64_t unit) {
  const auto count = static_cast<size_t>(ranks);
  std::vector<int64_t> wanted = shares;
  wanted.resize(count, images / ranks);
  const int64_t groups = std::max(ceil_div(images, unit), ranks);
  std::vector<int64_t> units(count);
  for (size_t r = 0; r < count; ++r) units[r] = std::max<int64_t>(1, (wanted[r] + unit / 2) / unit);
  // A group goes where, or comes from where, the share is furthest from what was asked for.
  for (int64_t sum = sum_of_shares(units); sum != groups; sum += sum < groups ? 1 : -1) {
    size_t best = count;
    const auto excess = [&](size_t r) { return units[r] * unit - wanted[r]; };
    for (size_t r = 0; r < count; ++r) {
      if (sum > groups && units[r] == 1) continue;
      if (best == count || (sum < groups ? excess(r) < excess(best) : excess(r) > excess(best))) best = r;
    }
    units[best] += sum < groups ? 1 : -1;
  }
  std::vector<int64_t> nearest;
  nearest.reserve(units.size());
  for (const int64_t n : units) nearest.push_back(n * unit);
  nearest.back() -= groups * unit - images;
  return nearest;
}

void require_shares(const std::vector<int64_t>& shares, int64_t images, int64_t ranks, int64_t unit) {
  std::string wrong;
  const int64_t sum = sum_of_shares(shares);
  if (static_cast<int64_t>(shares.size()) != ranks)
    wrong = strf("there are %zu of them for mesh.dp %lld", shares.size(), static_cast<long long>(ranks));
  else if (sum != images)
    wrong = strf("they make %lld images of a micro-batch of %lld (train.batch / train.accumulation)",
                 static_cast<long long>(sum), static_cast<long long>(images));
  for (size_t r = 0; wrong.empty() && r < shares.size(); ++r)
    if (shares[r] % unit != 0 && (r + 1 < shares.size() || images % unit == 0))
      wrong = strf(
          "%lld of rank %zu is no multiple of the %lld images that are mixed together "
          "(augment.mix_group)",
          static_cast<long long>(shares[r]), r, static_cast<long long>(unit));
  if (wrong.empty()) return;
  const int64_t least = ranks * unit;
  throw Error(ErrorKind::kConfig, strf("mesh.balance=%s: %s", shares_text(shares).c_str(), wrong.c_str()),
              images < least
                  ? strf("a micro-batch of at least %lld, a group each", static_cast<long long>(least))
                  : "the nearest that would do is mesh.balance=" +
                        shares_text(nearest_shares(shares, images, ranks, unit)));
}

std::vector<int64_t> shares_by_speed(int64_t images, int64_t unit, const std::vector<PlaceSpeed>& places) {
  const size_t count = places.size();
  const int64_t groups = ceil_div(images, unit);
  VT_CHECK(groups >= static_cast<int64_t>(count), "%lld groups for %zu ranks", static_cast<long long>(groups),
           count);
  std::vector<int64_t> shares(count, unit);
  const auto time_with_more = [&](size_t r) {
    return places[r].fixed_s + places[r].per_image_s * static_cast<double>(shares[r] + unit);
  };
  for (int64_t given = static_cast<int64_t>(count); given < groups; ++given) {
    size_t best = count, full = 0;
    for (size_t r = 0; r < count; ++r) {
      if (shares[r] + unit > places[r].most)
        ++full;
      else if (best == count || time_with_more(r) < time_with_more(best))
        best = r;
    }
    for (size_t r = 0; full == count && r < count; ++r)
      if (best == count || time_with_more(r) < time_with_more(best)) best = r;
    shares[best] += unit;
  }
  shares.back() -= groups * unit - images;
  return shares;
}

std::vector<double> largest_by_place(const Mesh& mesh, const std::vector<double>& of_ranks) {
  std::vector<double> places(static_cast<size_t>(mesh.size(Axis::kData)));
  for (size_t r = 0; r < of_ranks.size(); ++r) {
    double& place = places[static_cast<size_t>(mesh.of_rank(static_cast<int>(r)).coordinate(Axis::kData))];
    place = std::max(place, of_ranks[r]);
  }
  return places;
}

std::vector<CutTable> cuts_by_shares(const std::vector<int64_t>& shares, int64_t eval_batch) {
  std::vector<CutTable> tables = {{Axis::kData, 'B', cuts_of_shares(shares)}};
  if (eval_batch == tables[0].cuts.back()) return tables;
  std::vector<PlaceSpeed> places;
  places.reserve(shares.size());
  for (const int64_t share : shares) places.push_back({.per_image_s = 1.0 / static_cast<double>(share)});
  tables.push_back({Axis::kData, 'B', cuts_of_shares(shares_by_speed(eval_batch, 1, places))});
  return tables;
}

std::vector<int64_t> shares_of_cuts(const std::vector<int64_t>& cuts) {
  std::vector<int64_t> shares;
  for (size_t r = 0; r + 1 < cuts.size(); ++r) shares.push_back(cuts[r + 1] - cuts[r]);
  return shares;
}

}  // namespace vitrail
