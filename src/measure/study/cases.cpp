#include "measure/study/cases.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace vitrail {

namespace {

// Keeps what may stand in a file's name; anything else becomes "-".
std::string as_name(const std::string& text) {
  std::string name = text;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
  return name;
}

// The batches of a rank that the figures of a study need with so many ranks, and the share of the data.
std::vector<std::pair<int64_t, double>> loads_of(const StudyConfig& c, int64_t ranks, int64_t most_ranks) {
  std::set<std::pair<int64_t, double>> loads;
  const bool trains = c.kind == StudyKind::kTrain;
  for (const int64_t batch : integers_of(c.batches)) {
    if (c.strong == StrongScaling::kGlobal) loads.emplace(batch / ranks, 1);
    if (c.strong == StrongScaling::kPerRank) loads.emplace(batch, 1);
    if (c.weak)
      loads.emplace(batch, trains ? static_cast<double>(ranks) / static_cast<double>(most_ranks) : 1);
  }
  return {loads.begin(), loads.end()};
}

// One rank is the same whatever the transport, which it does not use.
std::vector<std::string> transports_of(const StudyConfig& c, int64_t ranks) {
  return ranks == 1 ? std::vector<std::string>{"alone"} : c.transports;
}

void add_updates(const StudyConfig& c, std::vector<StudyCase>& cases) {
  const std::vector<int64_t> all = integers_of(c.ranks);
  const int64_t most = *std::max_element(all.begin(), all.end());
  const CaseKind kind = c.kind == StudyKind::kTrain ? CaseKind::kTrain : CaseKind::kSteps;
  for (const std::string& model : c.models)
    for (const std::string& device : c.device)
      for (const int64_t ranks : all)
        for (const std::string& transport : transports_of(c, ranks))
          for (const auto& [batch, fraction] : loads_of(c, ranks, most))
            cases.push_back({.kind = kind,
                             .model = model,
                             .device = device,
                             .transport = transport,
                             .ranks = ranks,
                             .batch = batch,
                             .fraction = fraction});
}

void add_all_reduces(const StudyConfig& c, std::vector<StudyCase>& cases) {
  for (const double megabytes : numbers_of(c.messages))
    for (const int64_t ranks : integers_of(c.ranks))
      for (const std::string& transport : c.transports)
        if (ranks > 1)
          cases.push_back({.kind = CaseKind::kAllReduce,
                           .device = "cpu",
                           .transport = transport,
                           .ranks = ranks,
                           .megabytes = megabytes});
}

}  // namespace

std::string StudyCase::point() const {
  if (kind == CaseKind::kAllReduce)
    return strf("all-reduce.%s.r%lld.%gMB", transport.c_str(), static_cast<long long>(ranks), megabytes);
  std::string text = strf("%s.%s.%s.r%lld.b%lld", as_name(model).c_str(), as_name(device).c_str(),
                          transport.c_str(), static_cast<long long>(ranks), static_cast<long long>(batch));
  return fraction < 1 ? text + strf(".f%.4g", fraction) : text;
}

std::string StudyCase::name() const {
  return point() + "." + std::to_string(repetition);
}

std::vector<StudyCase> list_cases(const StudyConfig& config) {
  std::vector<StudyCase> points, cases;
  add_updates(config, points);
  add_all_reduces(config, points);
  std::set<std::string> names;
  for (const StudyCase& one : points)
    if (!names.insert(one.point()).second)
      throw Error(ErrorKind::kUsage, strf("two cases would be called %s", quoted(one.point()).c_str()),
                  "models whose names differ in letters and digits");
  for (int64_t repetition = 1; repetition <= config.repeat; ++repetition)
    for (StudyCase one : points) {
      one.repetition = repetition;
      cases.push_back(one);
    }
  return cases;
}

std::vector<StudyCase> shuffled(std::vector<StudyCase> cases, int64_t seed) {
  const uint64_t key = name_key("study order") ^ static_cast<uint64_t>(seed);
  for (size_t left = cases.size(); left > 1; --left)
    std::swap(cases[left - 1], cases[counter_hash(key, left) % left]);
  return cases;
}

std::vector<int64_t> shares_of(const std::vector<StudyHost>& hosts, int64_t ranks) {
  std::vector<int64_t> shares(hosts.size());
  int64_t left = ranks;
  for (bool given = true; left > 0 && given;) {
    given = false;
    for (size_t i = 0; i < hosts.size() && left > 0; ++i)
      if (shares[i] < hosts[i].slots) {
        ++shares[i];
        --left;
        given = true;
      }
  }
  if (left > 0)
    throw Error(ErrorKind::kUsage,
                strf("--ranks: %lld, and the nodes have slots for %lld", static_cast<long long>(ranks),
                     static_cast<long long>(ranks - left)),
                "fewer ranks, or more slots in --hosts");
  return shares;
}

std::string hosts_for(const std::vector<StudyHost>& hosts, int64_t ranks) {
  const std::vector<int64_t> shares = shares_of(hosts, ranks);
  std::string text;
  for (size_t i = 0; i < hosts.size(); ++i)
    if (shares[i] > 0)
      text += strf("%s%s:%lld", text.empty() ? "" : ",", hosts[i].name.c_str(),
                   static_cast<long long>(shares[i]));
  return text;
}

}  // namespace vitrail
