// Says which options of `plan` ask for a table or a search of their own, what has no part in it, and what
// goes with another option alone.
#include "base/error.h"
#include "measure/fit_options.h"

namespace vitrail {

namespace {

struct OptionsBeside {
  const char* question;
  std::vector<const char*> all;
};

// The options that ask another question than this one, or would have no effect on its answer.
const std::vector<OptionsBeside>& apart() {
  static const std::vector<OptionsBeside> all = {
      {"parameters", {"targets", "cluster", "wanted-batch", "dump-after"}},
      {"targets", {"target", "cluster", "wanted-batch", "dump-after"}},
      {"wanted-batch",
       {"dump-after", "one-device-s", "trace", "points", "batch", "train.batch", "train.micro_batch",
        "train.accumulation", "mesh.balance"}},
      {"cluster", {"dump-after"}}};
  return all;
}

// The options that only this question has.
const std::vector<OptionsBeside>& together() {
  static const std::vector<OptionsBeside> all = {
      {"targets", {"figure"}}, {"cluster", {"nodes", "devices", "one-device-s", "trace", "points"}}};
  return all;
}

std::string as_written(const std::string& key) {
  return (key.find('.') == key.npos ? "--" : "--set ") + key;
}

}  // namespace

void require_one_question(const IsGiven& given) {
  for (const auto& [question, others] : apart())
    for (const char* other : others)
      if (given(question) && given(other))
        throw Error(ErrorKind::kUsage,
                    strf("--%s and %s ask for different things", question, as_written(other).c_str()),
                    strf("one of them: plan answers --%s without %s", question, as_written(other).c_str()));
  for (const auto& [question, parts] : together())
    for (const char* part : parts)
      if (given(part) && !given(question))
        throw Error(ErrorKind::kUsage, strf("--%s goes with --%s", part, question),
                    strf("--%s too, or neither", question));
}

bool names_a_mesh(const IsGiven& given) {
  for (const char* key : {"mesh", "mesh.dp", "mesh.tp", "mesh.sp", "mesh.pp", "mesh.zero"})
    if (given(key)) return true;
  return false;
}

}  // namespace vitrail
