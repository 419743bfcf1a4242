// The cases of a scaling study: what each runs, under which name its result is kept, and in which order they
// come. Runs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "measure/study/study_config.h"

namespace vitrail {

enum class CaseKind { kSteps, kTrain, kAllReduce };
template <>
struct EnumNames<CaseKind> {
  static constexpr const char* names[] = {"steps", "train", "all-reduce"};
};

// One measurement, repeated. A rank that is alone has no transport: "alone".
struct StudyCase {
  CaseKind kind = CaseKind::kSteps;
  std::string model, device, transport;
  int64_t ranks = 1;
  int64_t batch = 0;     // images of a rank; none in an all-reduce
  double fraction = 1;   // of the training data
  double megabytes = 0;  // of an all-reduce
  int64_t repetition = 1;

  int64_t global_batch() const { return batch * ranks; }
  std::string point() const;  // the name without the repetition
  std::string name() const;   // of the file that keeps the result
};

// Every case of the study, each once however many of its figures show it. Throws Error(kUsage) where two
// would have one name.
std::vector<StudyCase> list_cases(const StudyConfig& config);
// The same in an order drawn by the seed, so that a drift of the machine meets all cases alike.
std::vector<StudyCase> shuffled(std::vector<StudyCase> cases, int64_t seed);

struct StudyHost {
  std::string name;
  int64_t slots = 1;
};
// Says where cases run: the program itself, and nodes with the environment that reaches them.
struct StudyPlaces {
  std::string program;
  std::vector<StudyHost> hosts = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // of runs on nodes
};

// Returns the ranks of each host: spread over as many hosts as possible. Throws Error(kUsage) when there are
// more ranks than slots.
std::vector<int64_t> shares_of(const std::vector<StudyHost>& hosts, int64_t ranks);
// Returns the same as "vt1:2,vt2:1".
std::string hosts_for(const std::vector<StudyHost>& hosts, int64_t ranks);

// The command of a case. A training run writes to `folder`.
std::vector<std::string> words_of(const StudyCase& one, const StudyConfig& config, const StudyPlaces& places,
                                  const std::string& folder);

// Says by what a case is predicted: a network and a device file, by their paths, on so many nodes.
struct PredictedOn {
  std::string network, target;
  int64_t nodes = 1;
};
// The command that predicts a case: `plan --cluster` of the same run.
std::vector<std::string> plan_words_of(const StudyCase& one, const StudyConfig& config,
                                       const std::string& program, const PredictedOn& on);

}  // namespace vitrail
