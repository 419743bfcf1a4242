#include "train/seen_images.h"

#include <algorithm>
#include <cmath>

#include "telemetry/format.h"

namespace vitrail {

namespace {

constexpr int64_t kMostLookedFor = 200;

// What marks say of a dataset.
struct MarkedSeen {
  int64_t marks = 0, found = 0;
  int64_t images = 0;  // of the dataset, estimated
  bool all = true;     // every marked set was marked and compared whole

  void add(const std::vector<ImageMark>& marked, int64_t size, const Dataset& data, SearchLimits limits) {
    const Overlap overlap = find_marks(marked, data, limits);
    marks += overlap.looked_at;
    found += overlap.found;
    // The share found among the marked images is assumed for all of them.
    const int64_t seen = std::llround(overlap.share() * static_cast<double>(size));
    images = std::min(data.size(), images + std::min(data.size(), seen));
    all = all && overlap.looked_at == size && overlap.one_in == 1;
  }
  std::string none_found() const {
    return strf("none of %s that the model keeps a mark of is among these; of the others nothing is known",
                format_count(marks, "training image").c_str());
  }
};

MarkedSeen look_for(const std::vector<EarlierImages>& earlier, const Dataset& data, SearchLimits limits) {
  MarkedSeen seen;
  for (const EarlierImages& set : earlier) seen.add(set.images, set.size, data, limits);
  return seen;
}

std::string share_text(const Overlap& overlap, bool exact) {
  return (exact ? "" : "about ") + format_percent(overlap.share());
}

}  // namespace

SeenImages seen_images(const Dataset& data, const Dataset& train, const std::vector<EarlierImages>& earlier,
                       SearchLimits limits) {
  Overlap overlap = overlap_with(data, train, kMostLookedFor, limits);
  const bool exact = overlap.looked_at == data.size() && overlap.one_in == 1;
  const MarkedSeen before = look_for(earlier, data, limits);
  SeenImages seen;
  if (before.found == 0) {
    if (overlap.found > 0) seen.share = share_text(overlap, exact);
    if (!before.all)
      seen.unknown = "of what the model had learned from before its run, " + before.none_found();
  } else {
    // No image is counted twice: what the run has learned from, too, is not among the earlier ones.
    const int64_t own = std::llround(overlap.share() * static_cast<double>(data.size()));
    overlap = {.looked_at = data.size(), .found = std::min(data.size(), own + before.images)};
    seen.share =
        share_text(overlap, exact && before.all) +
        strf(" (some before its run: %lld of %s that the model it began with keeps a mark of)",
             static_cast<long long>(before.found), format_count(before.marks, "training image").c_str());
  }
  seen.overlap = overlap;
  return seen;
}

SeenImages seen_by_marks(const Dataset& data, const LearnedFrom& learned) {
  MarkedSeen marked = look_for(learned.earlier, data, {});
  marked.add(learned.images, learned.size, data, {});
  SeenImages seen;
  if (marked.found == 0 && !marked.all) {
    seen.unknown = "the training data is not at hand: " + marked.none_found();
    return seen;
  }
  seen.overlap = Overlap{.looked_at = data.size(), .found = marked.images};
  if (marked.images > 0)
    seen.share = share_text(*seen.overlap, marked.all) +
                 strf(" (%lld of %s that the model keeps a mark of)", static_cast<long long>(marked.found),
                      format_count(marked.marks, "training image").c_str());
  return seen;
}

std::string seen_validation(const Dataset& val, const Dataset& train,
                            const std::vector<EarlierImages>& earlier) {
  constexpr SearchLimits kLittle{.bytes = uint64_t{32} << 20, .images = 20'000};
  const std::string share = seen_images(val, train, earlier, kLittle).share;
  return share.empty()
             ? ""
             : "warning: " + share +
                   " of the validation images are training images: results on them, and with them the "
                   "choice of best/, say little about new ones";
}

}  // namespace vitrail
