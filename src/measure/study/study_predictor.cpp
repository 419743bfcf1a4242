#include "measure/study/study_predictor.h"

#include <algorithm>

#include "base/error.h"
#include "measure/device_check.h"
#include "measure/host.h"
#include "plan/devices.h"
#include "simulate/cluster_plan.h"
#include "telemetry/format.h"

namespace vitrail {

namespace {

constexpr const char* kHostNetwork = "ethernet-1g";  // its first level joins ranks of one host by memory

// The updates of a study, each once.
std::vector<StudyCase> updates_in(const StudyConfig& config) {
  std::vector<StudyCase> cases = list_cases(config);
  std::erase_if(cases, [](const StudyCase& c) { return c.kind == CaseKind::kAllReduce || c.repetition > 1; });
  return cases;
}

// The nodes on which a case's ranks run. Throws Error(kUsage) where these have different numbers of them.
int64_t nodes_of(const StudyCase& one, const std::vector<StudyHost>& hosts) {
  if (one.transport != "nodes") return 1;
  std::vector<int64_t> shares = shares_of(hosts, one.ranks);
  std::erase(shares, 0);
  for (const int64_t share : shares)
    VT_REQUIRE(share == shares[0], ErrorKind::kUsage, "the nodes have different numbers of ranks");
  return std::ssize(shares);
}

// Runs plans one by one; one that several cases share, once.
class Plans {
 public:
  Plans(const StudyConfig& config, const StudyPlaces& places, const StudyHooks& hooks)
      : config_(config), places_(places), hooks_(hooks) {}

  // Returns the seconds of an update; throws Error(kConfig) where the plan is refused.
  double update_s(const StudyCase& one, const std::string& network, const std::string& target) {
    const PredictedOn on{network, target, nodes_of(one, places_.hosts)};
    const auto words = plan_words_of(one, config_, places_.program, on);
    const auto known = seconds_.find(words);
    return known != seconds_.end() ? known->second : seconds_.emplace(words, run(one, words)).first->second;
  }

 private:
  double run(const StudyCase& one, const std::vector<std::string>& words) const {
    const auto go_on = [&] { return !(hooks_.stop && hooks_.stop()); };
    const StudyHooks::End end = go_on() ? hooks_.run(words, {}, go_on) : StudyHooks::End();
    if (!go_on())
      throw Error(ErrorKind::kStopped, "stopped while updates were predicted",
                  "the same command goes on where it was");
    if (end.code != 0)
      throw Error(ErrorKind::kConfig, "plan --cluster: " + reason_of(end),
                  "vitrail plan --cluster with the same options says more");
    return from_plan(one, end.out);
  }

  const StudyConfig& config_;
  const StudyPlaces& places_;
  const StudyHooks& hooks_;
  std::map<std::vector<std::string>, double> seconds_;
};

}  // namespace

StudyPredictor::StudyPredictor(const StudyConfig& config, const PredictionPlaces& places) : config_(config) {
  if (!config.predicted.empty()) {
    known_ = {config.predicted, read_predicted(config.predicted)};
    return;
  }
  for (const std::string& device : config.device) bases_[device] = basis_of(device, places);
}

StudyPredictor::Basis StudyPredictor::basis_of(const std::string& device, const PredictionPlaces& places) {
  const bool named = !config_.cluster.empty();
  if (!named && !named_device(device, "--device").on_host)
    return {"no network file says how ranks on " + device + " are joined: --cluster dgx-a100, or a file"};
  const DeviceInfo here = device_here(device, 0, "");
  const std::optional<std::string> target = speed_path(here, config_.target, places.devices);
  if (named) require_speed(target.has_value());
  if (!target)
    return {"no device file describes " + name_of(here) +
            ": vitrail bench calibrate --out FILE, --target FILE"};
  const std::string network = find_network(named ? config_.cluster : kHostNetwork, places.networks);
  known_.by += (known_.by.empty() ? "plan --cluster: " : "; ") + read_network(network).name + ", " +
               read_device_file(*target).name;
  return {"", network, *target};
}

std::string StudyPredictor::obstacle(const StudyCase& one, int cores) const {
  const Basis& basis = bases_.at(one.device);
  if (!basis.missing.empty()) return basis.missing;
  if (one.transport == "nodes" && config_.cluster.empty())
    return "no network file says how nodes are joined: --cluster NAME";
  if (takes_turns(one, config_, cores)) return "more threads than cores";
  if (config_.threads == 0 && one.ranks > 1)
    return "with --threads 0 hosts choose the threads of their ranks";
  return "";
}

StudyPrediction StudyPredictor::predict(const StudyPlaces& places, const StudyHooks& hooks, int cores) const {
  StudyPrediction prediction = known_;
  if (!config_.predicted.empty()) return prediction;
  Plans plans(config_, places, hooks);
  std::map<std::string, int64_t> left_out;  // by the reason
  const std::vector<StudyCase> updates = updates_in(config_);
  for (const StudyCase& one : updates) {
    std::string why = obstacle(one, cores);
    if (why.empty()) {
      const Basis& basis = bases_.at(one.device);
      try {
        prediction.points.push_back({one.model, one.device, one.transport, one.ranks, one.batch,
                                     plans.update_s(one, basis.network, basis.target)});
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kStopped) throw;
        if (error.kind() == ErrorKind::kConfig && !config_.cluster.empty())
          throw Error(error.kind(), one.point() + ": " + error.message(), error.hint());
        why = error.message();
      }
    }
    if (!why.empty()) ++left_out[why];
  }
  for (const auto& [why, count] : left_out)
    prediction.notes.push_back(strf("not predicted, %lld of %zu updates: %s", static_cast<long long>(count),
                                    updates.size(), why.c_str()));
  return prediction;
}

}  // namespace vitrail
