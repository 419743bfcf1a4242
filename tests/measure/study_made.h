// Results of a study as they would come from its cases, but synthetic: numbers that give round answers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure/study/study_prediction.h"

namespace vitrail {

inline StudyCase made_case(int64_t ranks, int64_t batch, int64_t repetition = 1) {
  return {.kind = CaseKind::kSteps,
          .model = "vit",
          .device = "cpu",
          .transport = ranks == 1 ? "alone" : "threads",
          .ranks = ranks,
          .batch = batch,
          .repetition = repetition};
}

// An update of which `exposed_s` is exposed on every rank, and half of that imbalance.
inline CaseResult made_result(const StudyCase& one, double update_s, double exposed_s = 0) {
  CaseResult result{.which = one};
  result.update_s = update_s;
  result.images_per_s = static_cast<double>(one.global_batch()) / update_s;
  const RankTime time{
      .compute_s = update_s - exposed_s, .exposed_s = exposed_s, .imbalance_s = exposed_s / 2};
  result.ranks.assign(static_cast<size_t>(one.ranks), time);
  return result;
}

inline CaseResult made_message(int64_t ranks, double megabytes, double seconds, int64_t repetition = 1) {
  CaseResult result{.which = {.kind = CaseKind::kAllReduce,
                              .device = "cpu",
                              .transport = "threads",
                              .ranks = ranks,
                              .megabytes = megabytes,
                              .repetition = repetition}};
  result.message_s = seconds;
  return result;
}

// Updates of 0.75 s on one rank; on two 0.5 s, or 1 s with as many images each as the one had.
inline StudyPrediction made_prediction() {
  return {"plan --cluster: N, D",
          {{"vit", "cpu", "alone", 1, 16, 0.75},
           {"vit", "cpu", "threads", 2, 8, 0.5},
           {"vit", "cpu", "threads", 2, 16, 1}},
          {"not predicted, 1 of 4 updates: more threads than cores"}};
}

}  // namespace vitrail
