// Runs the cases of a study that are not in its folder yet, each as a process of its own; one that fails is
// kept as such, and the study goes on. Prints nothing and starts nothing itself.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "measure/study/case_result.h"
#include "measure/study/study_folder.h"

namespace vitrail {

struct StudyProgress {
  int64_t more = 0;                  // cases since the last call
  const CaseResult* last = nullptr;  // none: these were there already
};

struct StudyHooks {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  struct End {
    int code = 0;
    std::string out, err;
  };
  // Runs a program to its end; asks `go_on` meanwhile and ends it when told no.
  std::function<End(const std::vector<std::string>& words, const Variables& environment,
                    const std::function<bool()>& go_on)>
      run;
  std::function<void(const StudyProgress&)> progress = {};  // for the cases of earlier runs, then for each
  std::function<bool()> stop = {};
};

// Returns "exit code 64: ..." with the line that says what went wrong, of all that a program wrote.
std::string reason_of(const StudyHooks::End& end);

// Returns the results of all cases, in the order of list_cases(). Cases that failed before are not run again,
// unless `retry`. Throws Error(kStopped) when a stop is asked for: what has ended is kept.
std::vector<CaseResult> run_study(const StudyConfig& config, const StudyFolder& folder,
                                  const StudyPlaces& places, const StudyHooks& hooks, bool retry);

}  // namespace vitrail
