// The results of a study by point: the repetitions of one case put together, then points set against each
// other as strong and weak scaling. Computes only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/timing.h"
#include "measure/study/case_result.h"
#include "measure/study/fits.h"

namespace vitrail {

struct StudyPoint {
  StudyCase which;  // of the first repetition
  size_t failed = 0;
  std::string error;              // of the last that failed
  Spread update_s, images_per_s;  // of the repetitions that have not
  RankTime times;                 // of an update: medians of the repetitions, each a mean of its ranks
  std::vector<double> loads;      // by rank: the share of the time in which it computed
  double sent_bytes = kUnknown, memory_bytes = kUnknown, temperature = kUnknown;
  Spread epoch_s, top1;             // of training runs: an epoch's seconds, the last accuracy
  std::vector<EpochResult> epochs;  // means of the repetitions
  Spread message_s;                 // of an all-reduce
  double predicted_s = kUnknown;    // an update's, by a model of the machine
  bool oversubscribed = false;      // more threads than cores

  bool done() const { return update_s.count > 0 || message_s.count > 0; }
  double exposed_share() const;
  double predicted_error() const;  // of the predicted update, as a share of the measured one
};

// Returns whether a case has more threads than cores: ranks of this host's processor alone.
bool takes_turns(const StudyCase& one, const StudyConfig& config, int cores);

// `cores` are those that the cases could run on. Points come in the order of their first cases.
std::vector<StudyPoint> points_of(const std::vector<CaseResult>& results, const StudyConfig& config,
                                  int cores);

enum class Scaling { kStrongGlobal, kStrongPerRank, kWeak };
template <>
struct EnumNames<Scaling> {
  static constexpr const char* names[] = {"strong, fixed batch", "strong, fixed batch a rank", "weak"};
};

// Holds what one number of ranks gives, against the smallest one.
struct CurveRow {
  const StudyPoint* point = nullptr;
  double seconds = kUnknown, low_s = kUnknown,
         high_s = kUnknown;  // of the same work (strong), of a share (weak)
  double speedup = kUnknown, efficiency = kUnknown;
  // The same of the predicted updates, against the predicted one of the smallest number.
  double predicted_s = kUnknown, predicted_speedup = kUnknown, predicted_efficiency = kUnknown;
};

// Points that differ in the number of ranks alone.
struct Curve {
  Scaling scaling = Scaling::kStrongGlobal;
  std::string model, device, transport;
  int64_t batch = 0;  // as it was given: of all ranks, or of each
  std::vector<CurveRow> rows;
  std::optional<ShareFit> amdahl, gustafson;

  std::string title() const;  // "strong, fixed batch 64, threads", with model and device where `long`
};
std::vector<Curve> curves_of(const std::vector<StudyPoint>& points, const StudyConfig& config);

// All-reduces over one transport among so many ranks, by size.
struct MessageCurve {
  std::string transport;
  int64_t ranks = 0;
  std::vector<const StudyPoint*> points;
  std::optional<LatencyFit> fit;
};
std::vector<MessageCurve> message_curves_of(const std::vector<StudyPoint>& points);

struct Advice {
  int64_t batch = 0, ranks = 0;  // of all ranks; none: 0
  std::string why;
};
// The smallest batch that loses little speed against the best, and little accuracy where that was measured.
Advice recommended_batch(const std::vector<StudyPoint>& points);

}  // namespace vitrail
