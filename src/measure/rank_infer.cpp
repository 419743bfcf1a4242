#include "measure/rank_infer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cores.h"
#include "base/error.h"
#include "measure/dist_bench.h"
#include "telemetry/format.h"
#include "tensor/layout.h"
#include "train/team.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

const char* result_of(const Engine& engine) {
  return engine.has_output("logits") ? "logits" : "features";
}

// One rank's part of every run.
class SharedRuns {
 public:
  explicit SharedRuns(const RankInferRequest& request)
      : partners_(*request.shared.rank->ranks), team_(&partners_), engine_(request.make(request.shared)) {
    const Dim mine = engine_.executor().input("images").shape()[0];
    const std::vector<float> all = rule_images(engine_.config(), mine.extent);
    const size_t elems = engine_.image_elems();
    images_.assign(all.begin() + mine.offset * static_cast<int64_t>(elems),
                   all.begin() + (mine.offset + mine.local) * static_cast<int64_t>(elems));
    const std::vector<int64_t> cuts = cut_points(mine.extent, partners_.mesh().size(Axis::kData));
    for (size_t r = 0; r + 1 < cuts.size(); ++r) rows_.push_back(cuts[r + 1] - cuts[r]);
  }

  // Returns the seconds from when all are ready until this rank has the rows of all.
  double once() {
    partners_.world().barrier();
    const auto start = Clock::now();
    engine_.run(images_, engine_.batch());
    logits_ = team_.gather_rows(engine_.output(result_of(engine_)), rows_);
    const double seconds = seconds_since(start);
    total_ += seconds;
    return seconds;
  }

  // Waits for the first rank, asleep, and runs when that does.
  void follow() {
    while (goes_on(partners_.world(), false)) once();
  }
  double lead() {
    goes_on(partners_.world(), true);
    return once();
  }
  void let_go() { goes_on(partners_.world(), false); }

  // The share of collectives in the runs of all ranks, and the largest memory of one.
  std::pair<double, size_t> summary() {
    double numbers[] = {engine_.take_collective_times().exposed_s, total_};
    team_.sum(numbers);
    std::vector<double> peaks(static_cast<size_t>(team_.size()));
    peaks[static_cast<size_t>(partners_.mesh().rank)] =
        static_cast<double>(engine_.plan().memory.peak_bytes());
    team_.sum(peaks);
    return {numbers[0] / numbers[1], static_cast<size_t>(*std::max_element(peaks.begin(), peaks.end()))};
  }

  const Engine& engine() const { return engine_; }
  const std::vector<float>& logits() const { return logits_; }
  bool leads() const { return team_.leads(); }

 private:
  MeshCommunicators& partners_;
  Team team_;
  Engine engine_;
  std::vector<float> images_, logits_;
  std::vector<int64_t> rows_;  // of each rank with other images
  double total_ = 0;
};

// One rank with all the cores, on the images that the others share: its thread is that of a rank with fewer.
class LoneRuns {
 public:
  LoneRuns(const RankInferRequest& request, int64_t images)
      : engine_(made_unbound(request)), images_(rule_images(engine_.config(), images)) {}

  double once() {
    const auto start = Clock::now();
    run_at(0);
    return seconds_since(start);
  }

  // Returns the rows of all images, batch by batch.
  std::vector<float> logits() {
    std::vector<float> all;
    for (size_t at = 0; at < images_.size() / engine_.image_elems();
         at += static_cast<size_t>(engine_.batch())) {
      const std::vector<float> rows = run_at(at);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  const Engine& engine() const { return engine_; }

 private:
  static Engine made_unbound(const RankInferRequest& request) {
    const BoundThread unbound(allowed_cores());
    return request.make(request.alone);
  }
  std::vector<float> run_at(size_t first) {
    const BoundThread unbound(allowed_cores());
    const size_t elems = engine_.image_elems();
    const size_t count = std::min(static_cast<size_t>(engine_.batch()), images_.size() / elems - first);
    engine_.run(std::span(images_).subspan(first * elems, count * elems), static_cast<int64_t>(count));
    return engine_.output(result_of(engine_));
  }

  Engine engine_;
  std::vector<float> images_;
};

Error stopped() {
  return Error(ErrorKind::kStopped, "stopped during a benchmark");
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  VT_CHECK(a.size() == b.size(), "%zu logits and %zu", a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

// A round is a run of each side, so that a disturbance of the machine meets both. Returns whether a stop
// ended it.
bool measure(const RankInferRequest& request, SharedRuns& shared, LoneRuns& alone, RankInferResult& result) {
  std::vector<double> together, lone;
  const TimingHooks hooks{.warm =
                              [&] {
                                together.clear();
                                lone.clear();
                                if (request.hooks.warm) request.hooks.warm();
                              },
                          .measured = request.hooks.measured};
  const auto round = [&] {
    if (request.stop && request.stop()) throw stopped();
    lone.push_back(alone.once());
    together.push_back(shared.lead());
  };
  try {
    time_calls(request.budget, round, hooks);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kStopped) return true;
    throw;
  }
  result.shared.seconds = spread_of(together);
  result.alone.seconds = spread_of(lone);
  return false;
}

InferSide side_of(const Engine& engine) {
  return {.batch = engine.options().batch,
          .threads = engine.plan().device.threads,
          .peak_bytes = engine.plan().memory.peak_bytes(),
          .seconds = {}};
}

ordered_json to_json(const InferSide& side) {
  return {{"batch", side.batch},
          {"threads", side.threads},
          {"ms_median", side.seconds.median * 1e3},
          {"ms_p90", side.seconds.p90 * 1e3},
          {"ms_min", side.seconds.min * 1e3},
          {"ms_max", side.seconds.max * 1e3},
          {"img_per_s", side.images_per_second()},
          {"memory_peak", side.peak_bytes}};
}

std::string text_of(const InferSide& side) {
  return strf("%s median, %s min, %s p90 at batch %lld; %s images/s; %s and %s a rank",
              format_seconds(side.seconds.median).c_str(), format_seconds(side.seconds.min).c_str(),
              format_seconds(side.seconds.p90).c_str(), static_cast<long long>(side.batch),
              format_si(side.images_per_second()).c_str(), format_count(side.threads, "thread").c_str(),
              format_bytes(side.peak_bytes).c_str());
}

}  // namespace

RankInferResult time_rank_infer(const RankInferRequest& request) {
  SharedRuns shared(request);
  RankInferResult result{
      .mesh = request.shared.distribution.mesh, .shared = side_of(shared.engine()), .alone = {}};
  bool ended = false;
  if (shared.leads()) {
    LoneRuns alone(request, request.shared.batch);
    result.alone = side_of(alone.engine());
    ended = measure(request, shared, alone, result);
    if (!ended) result.difference = largest_difference(shared.logits(), alone.logits());
    shared.let_go();
  } else {
    shared.follow();
  }
  if (Team(request.shared.rank->ranks).any(ended)) throw stopped();
  std::tie(result.exposed_share, result.shared.peak_bytes) = shared.summary();
  return result;
}

ordered_json to_json(const RankInferResult& r) {
  return {{"mesh", to_string(r.mesh)},          {"ranks", r.mesh.world()},
          {"runs", r.shared.seconds.count},     {"shared", to_json(r.shared)},
          {"alone", to_json(r.alone)},          {"throughput_ratio", r.throughput_ratio()},
          {"latency_ratio", r.latency_ratio()}, {"exposed_share", r.exposed_share},
          {"largest_difference", r.difference}};
}

std::vector<std::pair<std::string, std::string>> text_rows(const RankInferResult& r) {
  return {{to_string(r.mesh), text_of(r.shared)},
          {"one rank", text_of(r.alone)},
          {"against it",
           strf("%.3f of its throughput, %.3f of its speed for a batch, median of %zu runs each in turn",
                r.throughput_ratio(), r.latency_ratio(), r.shared.seconds.count)},
          {"communication", strf("%.1f %% of the time within collectives", 100 * r.exposed_share)},
          {"logits", strf("at most %.2g apart", r.difference)}};
}

}  // namespace vitrail
