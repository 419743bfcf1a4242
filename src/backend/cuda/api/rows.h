// The arguments of elementwise ops and of sums over rows, as program and plugin agree on them.
#pragma once

#include "backend/cuda/api/session.h"
#include "ops/act_kind.h"

namespace vitrail::cuda {

enum class MapKind {
  kCopy,  // to another type
  kGeluErf,
  kGeluTanh,
  kGeluErfSlope,
  kGeluTanhSlope,
  kTanh,
  kActivate,  // `act`
  kMultiply,  // by `factor`
  kScaleBy,   // by b's first element, which may be f64
  kAdd,
  kAverage,
  kProduct,
  // The gradients take two inputs, what the forward op kept and dy.
  kGeluErfGrad,
  kGeluTanhGrad,
  kTanhGrad,
  kActivateGrad,
};

// Sums over the rows of [rows, width]. The rows are divided into `parts` parts, each of which writes one row
// of `partials`.
struct ColumnSums {
  Operand target = {};  // [width]; null: no sums are wanted
  bool add = false;     // to what the target holds
  float* partials = nullptr;
  int64_t rows = 0, width = 0, parts = 1;
};

struct MapCall {
  Operand a, b = {}, y;
  int64_t count = 0;
  int64_t period = 0;  // elements of b, which repeats after them
  float factor = 0;
  ActKind act = ActKind::kRelu;
  ColumnSums sums = {};  // of y; for the gelu gradients and products only
};

// The sum over rows of x, or of x times y.
struct SumCall {
  Operand x, y = {};
  ColumnSums sums;
};

// Element i of this tensor is element base + counters[2] step + sum of (i / inner % local) stride of the
// whole tensor, and is kept when the hash at that index, 53 bits, is at least the threshold.
struct DropoutCall {
  static constexpr int kMaxTerms = 8;
  struct Term {
    int64_t inner, local, stride;
  };

  Operand x, y;
  const int64_t* counters = nullptr;  // seed, step, position of the first sample
  int64_t count = 0;
  uint64_t key = 0, threshold = 0, base = 0, step = 0;
  float scale = 0;
  int term_count = 0;
  Term terms[kMaxTerms] = {};
};

struct RowsApi {
  void (*map)(Session&, MapKind, const MapCall&);
  void (*sum)(Session&, const SumCall&);
  void (*dropout)(Session&, const DropoutCall&);
};

}  // namespace vitrail::cuda
