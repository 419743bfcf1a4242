#include "measure/study/study_run.h"

#include <map>

#include "backend/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "base/timing.h"
#include "measure/study/gpu_readings.h"

namespace vitrail {

std::string reason_of(const StudyHooks::End& end) {
  constexpr size_t kMost = 400;
  const size_t said = end.err.rfind("error: ");
  std::string text = said == std::string::npos ? end.err : end.err.substr(said + 7);
  text = text.substr(0, text.find('\n'));
  return strf("exit code %d%s%s", end.code, text.empty() ? "" : ": ",
              printable(text.substr(0, kMost)).c_str());
}

namespace {

class StudyRun {
 public:
  StudyRun(const StudyConfig& config, const StudyFolder& folder, const StudyPlaces& places,
           const StudyHooks& hooks)
      : config_(config), folder_(folder), places_(places), hooks_(hooks) {}

  std::vector<CaseResult> run(bool retry) {
    const std::vector<StudyCase> cases = list_cases(config_);
    const std::vector<StudyCase> order = shuffled(cases, config_.seed);
    for (const StudyCase& one : order) read(one, retry);
    report({std::ssize(results_), nullptr});
    for (const StudyCase& one : order) {
      if (results_.count(one.name())) continue;
      check_stop(cases.size());
      CaseResult result = measured(one);
      check_stop(cases.size());  // a case that was told to end has measured nothing
      folder_.keep(one, to_json(result));
      report({1, &results_.emplace(one.name(), std::move(result)).first->second});
    }
    std::vector<CaseResult> all;
    all.reserve(cases.size());
    for (const StudyCase& one : cases) all.push_back(results_.at(one.name()));
    return all;
  }

 private:
  void read(const StudyCase& one, bool retry) {
    const std::optional<Json> record = folder_.record(one);
    if (!record) return;
    CaseResult result = result_from(one, *record, folder_.file("cases/" + one.name() + ".json"));
    if (result.done() || !retry) results_.emplace(one.name(), std::move(result));
  }

  void check_stop(size_t total) const {
    if (hooks_.stop && hooks_.stop())
      throw Error(ErrorKind::kStopped, strf("stopped after %zu of %zu cases", results_.size(), total),
                  "the same command goes on where it was");
  }

  CaseResult measured(const StudyCase& one) {
    const auto start = Clock::now();
    CaseResult result;
    try {
      result = attempt(one);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kConfig) throw;
      result = {.which = one, .error = error.message()};
    }
    result.took_s = seconds_since(start);
    result.time = unix_seconds();
    return result;
  }

  CaseResult attempt(const StudyCase& one) {
    const std::string run_folder = one.kind == CaseKind::kTrain ? folder_.new_run_folder(one) : "";
    const auto start = Clock::now();
    const bool beside_host = !parse_device_name(one.device).entry->on_host;
    bool late = false;
    gpus_.start();
    const auto go_on = [&] {
      if (beside_host) gpus_.read();
      late = seconds_since(start) > config_.timeout;
      return !late && !(hooks_.stop && hooks_.stop());
    };
    const StudyHooks::End end =
        hooks_.run(words_of(one, config_, places_, run_folder),
                   one.transport == "nodes" ? places_.environment : StudyHooks::Variables{}, go_on);
    const auto reason = [&] { return late ? "it took longer than --timeout" : reason_of(end); };
    // What is refused before anything ran is a mistake in the study: the other cases would be refused, too.
    if (end.code == exit_code(ErrorKind::kUsage) && results_.empty())
      throw Error(ErrorKind::kConfig, one.name() + ": " + reason(),
                  "mend it and give the same --out again: nothing was measured");
    if (end.code != 0) throw Error(ErrorKind::kData, reason());
    CaseResult result = one.kind == CaseKind::kTrain       ? from_run(one, run_folder)
                        : one.kind == CaseKind::kAllReduce ? from_all_reduce(one, end.out)
                                                           : from_bench(one, end.out);
    if (beside_host) result.gpus = gpus_.result();
    return result;
  }

  void report(const StudyProgress& now) const {
    if (hooks_.progress) hooks_.progress(now);
  }

  const StudyConfig& config_;
  const StudyFolder& folder_;
  const StudyPlaces& places_;
  const StudyHooks& hooks_;
  GpuReadings gpus_;
  std::map<std::string, CaseResult> results_;
};

}  // namespace

std::vector<CaseResult> run_study(const StudyConfig& config, const StudyFolder& folder,
                                  const StudyPlaces& places, const StudyHooks& hooks, bool retry) {
  return StudyRun(config, folder, places, hooks).run(retry);
}

}  // namespace vitrail
