#include "train/replica_policy.h"

#include <algorithm>

#include "base/process_mark.h"

namespace vitrail {

namespace {

constexpr const char* kHint =
    "memory or a device of that host changes values: take it out of the run (its log of ECC errors, "
    "nvidia-smi -q, dmesg); --resume goes on from the last verified checkpoint";

// Those that are known to be wrong, or else all that may be.
const std::vector<int>& suspects_of(const ReplicaDifference& found) {
  return found.odd.empty() ? found.holders : found.odd;
}

std::string more_values(const ReplicaDifference& found) {
  return found.values > 1 ? strf(" (and %zu more values)", found.values - 1) : "";
}

}  // namespace

ReplicaPolicy::ReplicaPolicy(TrainStep& step, const Team& team, int64_t every, CheckpointKeeper& keeper,
                             RunJournal& journal)
    : step_(step),
      team_(team),
      every_(every),
      keeper_(keeper),
      journal_(journal),
      check_(step, team),
      hosts_(team.texts_of_all(ProcessMark::current().host)) {}

std::string ReplicaPolicy::difference_text(const ReplicaDifference& found, int64_t step) const {
  const auto named = [&](const std::vector<int>& ranks) {
    std::string text;
    for (const int rank : ranks)
      text +=
          strf("%srank %d on %s", text.empty() ? "" : ", ", rank, hosts_[static_cast<size_t>(rank)].c_str());
    return text;
  };
  const std::string where = strf("in %s%s after step %lld", found.value.c_str(), more_values(found).c_str(),
                                 static_cast<long long>(step));
  if (!found.odd.empty())
    return strf("%s differs from the other%s of %zu replicas %s", named(found.odd).c_str(),
                found.holders.size() - found.odd.size() > 1 ? "s" : "", found.holders.size(), where.c_str());
  return strf("%s differ from each other %s, and no majority says which is wrong",
              named(found.holders).c_str(), where.c_str());
}

// The rank that differs fails with its own error, the others through that.
void ReplicaPolicy::give_up(const ReplicaDifference& found, const std::string& text) const {
  if (suspects_of(found).front() != team_.rank()) team_.wait();
  throw Error(ErrorKind::kDevice, text, kHint);
}

void ReplicaPolicy::require_agreement(const Progress& progress) {
  if (const auto found = check_.compare())
    give_up(*found, difference_text(*found, progress.step) + ", before the first update");
  keeper_.note_verified(progress.step);
}

bool ReplicaPolicy::handle(Progress& progress) {
  const std::optional<ReplicaDifference> found = check_.compare();
  if (!found) {
    if (progress.step >= differed_at_) suspects_.clear();
    keeper_.note_verified(progress.step);
    return false;
  }
  const std::string text = difference_text(*found, progress.step);
  differed_at_ = progress.step;
  const std::vector<int> before = std::exchange(suspects_, suspects_of(*found));
  const bool again = std::ranges::any_of(
      suspects_, [&](int rank) { return std::ranges::find(before, rank) != before.end(); });
  if (again) give_up(*found, text + ", again right after going back");
  const std::optional<Progress> to = keeper_.restore_verified(step_);
  if (!to) give_up(*found, text + ", and there is no verified checkpoint to go back to");
  team_.wait();  // everyone has read the checkpoint before it is replaced
  progress = *to;
  journal_.open();
  journal_.event("replica_differs", strf("%s: back to step %lld, the last verified checkpoint", text.c_str(),
                                         static_cast<long long>(progress.step)));
  return true;
}

}  // namespace vitrail
