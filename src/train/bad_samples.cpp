#include "train/bad_samples.h"

#include "base/json_text.h"

namespace vitrail {

void BadSamples::found(Purpose purpose, const BadSample& bad) {
  if (team_.alone()) return journal_.event("bad_sample", "skipped " + bad.name + ": " + bad.reason);
  mine_.push_back({purpose, bad.sample, bad.name, bad.reason});
}

void BadSamples::share() {
  if (team_.any(unreported() > 0)) exchange();
}

void BadSamples::exchange() {
  Json list = Json::array();
  for (const Skipped& bad : mine_)
    list.push_back({bad.purpose == Purpose::kEval, bad.sample, bad.name, bad.reason});
  mine_.clear();
  const std::vector<std::string> lists = team_.texts_of_all(json_text(list));
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    const Json theirs = parse_json(lists[rank], "the samples that a rank could not read");
    for (const Json& bad : theirs)
      report({bad[0].get<bool>() ? Purpose::kEval : Purpose::kTrain, bad[1].get<int64_t>(),
              bad[2].get<std::string>(), bad[3].get<std::string>()},
             static_cast<int>(rank));
  }
}

// Ranks that share images, as those of tp do, find the same samples.
void BadSamples::report(const Skipped& bad, int rank) {
  std::set<int64_t>& known = known_[static_cast<size_t>(bad.purpose)];
  if (!known.insert(bad.sample).second) return;
  journal_.event("bad_sample", strf("skipped %s: %s (rank %d)", bad.name.c_str(), bad.reason.c_str(), rank));
  const Dataset& data = bad.purpose == Purpose::kEval ? *setup_.data.val : *setup_.data.train;
  if (std::ssize(known) <= bad_allowed(setup_.config.loader, data)) return;
  too_many_ = true;
  throw too_many_bad(known.size(), bad.name, bad.reason, setup_.config.loader);
}

}  // namespace vitrail
