// The speed of an inference that several ranks share, against one rank on the same cores, measured in
// alternation, and how far their logits are apart. Knows no options and prints nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/engine.h"
#include "base/timing.h"
#include "measure/timing.h"

namespace vitrail {

struct RankInferRequest {
  std::function<Engine(const EngineOptions&)> make;
  EngineOptions shared;  // on this rank
  EngineOptions alone;   // of one rank with the cores of all; its batch may be smaller
  TimingBudget budget;
  TimingHooks hooks = {};           // called on the first rank
  std::function<bool()> stop = {};  // asked between runs on the first rank; true ends with Error(kStopped)
};

// One of the two ways to run it.
struct InferSide {
  int64_t batch = 0;
  int threads = 0;        // of each rank
  size_t peak_bytes = 0;  // of a rank, the largest
  Spread seconds;         // from the first image on its way in to the last row out

  double images_per_second() const { return static_cast<double>(batch) / seconds.median; }
};

struct RankInferResult {
  Mesh mesh;
  InferSide shared, alone;
  double exposed_share = 0;  // of the shared runs' time, within collectives; mean of the ranks
  double difference = 0;     // the largest of a logit

  double throughput_ratio() const { return shared.images_per_second() / alone.images_per_second(); }
  double latency_ratio() const { return alone.seconds.median / shared.seconds.median; }  // above 1: faster
};
nlohmann::ordered_json to_json(const RankInferResult& result);
std::vector<std::pair<std::string, std::string>> text_rows(const RankInferResult& result);

// Every rank calls it; the first one has the result.
RankInferResult time_rank_infer(const RankInferRequest& request);

}  // namespace vitrail
