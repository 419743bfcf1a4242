// What changes persistent values, as the program hands it to the CUDA plugin: parameters are segments, of
// which one launch takes many, cut into chunks of which each block takes one. A step's numbers stay in device
// memory. Filled by launch_updates.cpp, read by device/updates.cu and its neighbours.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// Elements of a block's work; also of a partial sum of squares.
inline constexpr int64_t kChunk = 4096;

constexpr int64_t chunks_of(int64_t elems) {
  return (elems + kChunk - 1) / kChunk;
}

// Segments and where the chunks of each start. They travel as a kernel's argument: 4 KiB at most.
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

// The f64 values that last from launch to launch: the ops' control, hyper and counters.
struct StepNumbers {
  double skip, grad_factor, lr, decay, step, grad_norm;
};
struct HyperNumbers {
  double lr, decay, ema, spare;
};
struct CounterNumbers {
  double good, applied, skipped, skipped_in_a_row;
};

// A value and what it is changed with.
struct PairSegment {
  Operand to, from;
  int64_t elems = 0, first_chunk = 0;
};
// What all segments of a call share; of a moving average only.
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
  double* partial = nullptr;  // one a chunk
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
};

// One parameter. Its learning rate is lr times the step's; of itself it adds coupled times the step's decay
// to the gradient, and loses shrink times both.
struct UpdateSegment {
  Operand param, sum, m, v;  // m, v: null where the rule has none
  int64_t elems = 0, first_chunk = 0;
  double lr = 1, coupled = 0, shrink = 0;
  bool adapts = false;  // lamb
};
struct UpdateRule {
  const StepNumbers* step = nullptr;
  double beta1 = 0, beta2 = 0, eps = 0;  // beta1: also the momentum of sgd
  bool nesterov = false;

  bool operator==(const UpdateRule&) const = default;
};
struct UpdateCall {
  UpdateRule rule;
  double* squares = nullptr;  // lamb: two a chunk, of parameters and of directions
  Segments<UpdateSegment, 32> segments;
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
};

static_assert(sizeof(PairCall) <= 4096 && sizeof(SquareSumCall) <= 4096 && sizeof(UpdateCall) <= 4096);

}  // namespace vitrail::cuda
