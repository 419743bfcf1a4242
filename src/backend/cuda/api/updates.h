// The arguments of what changes persistent values, as the program passes them to the CUDA plugin. Parameters
// are segments, many of which go into one launch, cut into chunks that a block computes one at a time. The
// numbers of a step stay in device memory.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// The elements of one chunk, which is also the range of one partial sum of squares.
inline constexpr int64_t kChunk = 4096;

constexpr int64_t chunks_of(int64_t elems) {
  return (elems + kChunk - 1) / kChunk;
}

// The segments and where the chunks of each start. They are passed as a kernel's argument, of which there are
// at most 32,764 bytes.
template <typename Segment, int kMostSegments>
struct Segments {
  static constexpr int kMost = kMostSegments;

  int count = 0;
  int64_t chunks = 0;
  Segment items[kMost];

  void add(Segment segment) {
    segment.first_chunk = chunks;
    chunks += chunks_of(segment.elems);
    items[count++] = segment;
  }
};

// The f64 values that persist from launch to launch: the ops' control, hyper and counters.
struct StepNumbers {
  double skip, grad_factor, lr, decay, step, grad_norm;
};
struct HyperNumbers {
  double lr, decay, ema, spare;
};
struct CounterNumbers {
  double good, applied, skipped, skipped_in_a_row;
};

// A value and the one it is updated from.
struct PairSegment {
  Operand to, from;
  int64_t elems = 0, first_chunk = 0;
};
// Holds what all segments of a call share; its numbers are set for a moving average only.
struct PairRule {
  const StepNumbers* step = nullptr;
  const HyperNumbers* hyper = nullptr;
  bool warmup = false;

  bool operator==(const PairRule&) const = default;
};
struct PairCall {
  PairRule rule;
  Segments<PairSegment, 64> segments;
};

struct SumSegment {
  Operand x;
  int64_t elems = 0, first_chunk = 0;
};
struct SquareSumCall {
  double* partial = nullptr;  // one per chunk
  Segments<SumSegment, 120> segments;
};
struct TotalCall {
  const double* partial = nullptr;
  int64_t count = 0;
  double* total = nullptr;
};

struct StepControlCall {
  const double* square_sum = nullptr;
  const HyperNumbers* hyper = nullptr;
  double* loss_scale = nullptr;
  CounterNumbers* counters = nullptr;
  StepNumbers* step = nullptr;  // written
  double max_norm = 0;          // 0: no clipping
  bool dynamic = false;
  double min_scale = 1, max_scale = 1, window = 0;
  double* passed = nullptr;  // overflows passed over; null without hysteresis
  double hysteresis = 1;
  bool consecutive = false;
};

// One parameter. Its learning rate is lr times the step's; it adds coupled times the step's decay times
// itself to the gradient, and is reduced by shrink times the step's decay and learning rate times itself.
struct UpdateSegment {
  Operand param, sum, m, v;  // m, v: null where the rule has none
  Operand copy = {};         // the parameter in another type, written too; null: none. Not for lamb.
  int64_t elems = 0, first_chunk = 0;
  double lr = 1, coupled = 0, shrink = 0;
  bool adapts = false;  // lamb
};
struct UpdateRule {
  const StepNumbers* step = nullptr;
  double beta1 = 0, beta2 = 0, eps = 0;  // beta1: also the momentum of sgd
  bool nesterov = false;
  bool corrected = true;                // moments, which start at zero
  double trust_min = 0, trust_max = 0;  // lamb; max 0: no limit

  bool operator==(const UpdateRule&) const = default;
};
struct UpdateCall {
  UpdateRule rule;
  double* squares = nullptr;  // lamb: two per chunk, of parameters and of directions
  double* totals = nullptr;   // lamb in two parts: the two sums of one parameter
  Segments<UpdateSegment, 240> segments;
};

struct UpdatesApi {
  void (*copy)(Session&, const PairCall&);
  void (*accumulate)(Session&, const PairCall&);
  void (*average)(Session&, const PairCall&);  // an exponential moving average
  void (*square_sum)(Session&, const SquareSumCall&);
  void (*total)(Session&, const TotalCall&);
  void (*step_control)(Session&, const StepControlCall&);
  void (*sgd)(Session&, const UpdateCall&);
  void (*adam)(Session&, const UpdateCall&);
  void (*lion)(Session&, const UpdateCall&);
  void (*lamb)(Session&, const UpdateCall&);
  // Lamb in two parts, for parameters of which ranks hold parts: one segment each.
  void (*lamb_moments)(Session&, const UpdateCall&);  // totals are written
  void (*lamb_move)(Session&, const UpdateCall&);     // totals are read
};

static_assert(sizeof(PairCall) <= 32764 && sizeof(SquareSumCall) <= 32764 && sizeof(UpdateCall) <= 32764);

}  // namespace vitrail::cuda
