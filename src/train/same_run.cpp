#include "train/same_run.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "io/checkpoint/facts.h"
#include "train/train_config.h"

namespace vitrail {

namespace {

constexpr std::string_view kVal = "val.", kConfig = "config.", kCard = "card.", kTeacher = "teacher.";

using Differences = std::vector<FactDifference>;

// Returns whether a difference between a checkpoint's facts and this run's is reported rather than refused.
bool may_change(const std::string& key) {
  if (key.starts_with("machine.") || key.starts_with(kVal)) return true;
  return key.starts_with(kConfig) && change_of(key.substr(kConfig.size())) == Change::kTold;
}

// Returns whether the difference is in a fact that checkpoints of earlier versions do not hold.
bool is_unknown(const FactDifference& difference) {
  const std::string& key = difference.key;
  return difference.saved.is_null() && (key == "data.contents" || key.starts_with(kVal) ||
                                        key.starts_with(kCard) || key.starts_with(kTeacher));
}

// Describes a difference; fingerprints are left out, since they mean nothing to people.
std::string described(const FactDifference& difference) {
  const char* part = difference.key.starts_with(kVal) ? "validation" : "training";
  if (difference.key.ends_with(".contents"))
    return strf("the %s images under the same names have changed", part);
  if (difference.key == "data.fingerprint" || difference.key == "val.fingerprint")
    return strf("the %s data has other names or labels", part);
  if (difference.key == "teacher.weights") return "distill.teacher has other weights";
  return to_string(difference);
}

struct Refusal {
  std::string_view of;  // what keys begin with
  const char *text, *remedy;
};
constexpr Refusal kRefusals[] = {
    {"data.", "the data is not what the run has learned from:",
     "bring the data back as it was, or train into another folder with --out"},
    {kTeacher, "the teacher is not what the run has learned from:",
     "bring distill.teacher back as it was, wherever it lies, or train into another folder with --out"},
    {kCard, "the files of the model say other than when the run was started:",
     "bring the config files of model.init back as they were, or train into another folder with --out"},
    {"", "the checkpoint was made by another run:",
     "resume with the config the run was started with, or train into another folder"}};

[[noreturn]] void refuse_run(Differences refused) {
  const auto is_of = [](std::string_view what) {
    return [=](const FactDifference& difference) { return difference.key.starts_with(what); };
  };
  // Another config may make another card, which is then not told beside it.
  if (std::any_of(refused.begin(), refused.end(), is_of(kConfig))) std::erase_if(refused, is_of(kCard));
  const Refusal& refusal = *std::find_if(std::begin(kRefusals), std::end(kRefusals), [&](const Refusal& row) {
    return std::all_of(refused.begin(), refused.end(), is_of(row.of));
  });
  std::string lines;
  for (const FactDifference& difference : refused) lines += "\n  " + described(difference);
  throw Error(ErrorKind::kConfig, refusal.text + lines, refusal.remedy);
}

}  // namespace

bool require_same_run(const Json& saved, const Json& now,
                      const std::function<void(const std::string&)>& report) {
  Differences refused;
  bool same_val = true;
  for (const FactDifference& difference : compare_facts(saved, now)) {
    if (is_unknown(difference)) continue;
    same_val = same_val && !difference.key.starts_with(kVal);
    if (may_change(difference.key))
      report("changed since the checkpoint: " + described(difference));
    else
      refused.push_back(difference);
  }
  if (!refused.empty()) refuse_run(std::move(refused));
  return same_val;
}

}  // namespace vitrail
