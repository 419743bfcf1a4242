// A study of a few cases, and a stand-in for the program that measures them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/values.h"
#include "measure/study/study.h"
#include "measure/study/study_run.h"

namespace vitrail {

inline StudyConfig small_study() {
  StudyConfig config;
  config.models = {"vit_tiny_patch16_224"};
  config.ranks = {"1,2,4"};
  config.batches = {"16,32"};
  config.repeat = 2;
  config.weak = true;
  config.messages = {"0.1,1"};
  check_study(config);
  return config;
}

inline std::string value_after(const std::vector<std::string>& words, const std::string& name) {
  const auto found = std::find(words.begin(), words.end(), name);
  return found == words.end() ? "1" : *(found + 1);
}

// A program by a law: an update of b images a rank takes b + 2 (ranks - 1) ms, 2 ms of it exposed a partner.
struct FakeProgram {
  int started = 0, stop_after = 1 << 30, fails_at = 0, ranks_more = 0;

  std::string answer(const std::vector<std::string>& words) const {
    const auto ranks = parse_integer(value_after(words, "--ranks")).value();
    if (value_after(words, "--mb") != "1" || std::count(words.begin(), words.end(), "dist") > 0)
      return strf(R"({"threads": {"ranks": %lld, "ms_median": %g}})", static_cast<long long>(ranks),
                  0.1 + parse_number(value_after(words, "--mb")).value());
    const auto batch = parse_integer(value_after(words, "--batch")).value();
    if (ranks == 1)
      return strf(R"({"batch": %lld, "ms_median": %lld, "img_per_s": 1000, "memory_peak": 100, "loss": 1})",
                  static_cast<long long>(batch), static_cast<long long>(batch));
    const double exposed = 0.002 * static_cast<double>(ranks - 1);
    const long long together = batch * ranks;
    const double update = 0.001 * static_cast<double>(batch) + exposed;
    std::string computes, exposes;
    for (int64_t r = 0; r < ranks; ++r) {
      computes += strf("%s%g", r ? "," : "", 10 * (update - exposed));
      exposes += strf("%s%g", r ? "," : "", 10 * exposed);
    }
    return strf(R"({"ranks": %lld, "batch": %lld, "update_s": {"median": %g}, "images_per_second": %g,)",
                static_cast<long long>(ranks) + ranks_more, together, update,
                static_cast<double>(together) / update) +
           strf(R"("timing": {"updates": 10, "compute_s": [%s], "exposed_s": [%s]}, "sent_bytes": 7})",
                computes.c_str(), exposes.c_str());
  }

  StudyHooks hooks() {
    return {.run =
                [this](auto& words, auto&, auto&) {
                  const std::string out = answer(words);
                  const int code = ++started == fails_at ? 69 : 0;
                  return StudyHooks::End{code, out, "error: no luck\n  try: again\n"};
                },
            .stop = [this] { return started >= stop_after; }};
  }
};

inline std::vector<CaseResult> run_made(const StudyConfig& config, const std::string& path,
                                        FakeProgram& program, bool retry = false) {
  const StudyFolder folder(path, config);
  return run_study(config, folder, {.program = "vitrail"}, program.hooks(), retry);
}

}  // namespace vitrail
