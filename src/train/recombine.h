// A value that lies on several ranks, put together on the first of them as its layout says: parts in their
// places, partial sums added, and of what is replicated every copy by itself. Knows no program.
#pragma once

#include <string>
#include <vector>

#include "passes/distribute.h"
#include "runtime/rank_context.h"
#include "tensor/tensor.h"

namespace vitrail {

struct Recombined {
  TensorDesc desc;                          // whole
  std::vector<std::vector<double>> copies;  // of a float type: each copy, in f64
  std::vector<std::vector<int>> ranks;      // of which each copy is made
  std::vector<double> magnitude;            // of the first copy: the sum of the partial sums' magnitudes
  std::vector<std::byte> raw;               // of the first copy as it lies; empty for partial sums
  size_t summed = 1;                        // partial sums that make an element
};

class Recombiner {
 public:
  // Both, the rank and the distribution, must outlive it.
  Recombiner(RankContext& rank, const Distribution& how) : rank_(rank), how_(how) {}

  bool leads() const { return how_.mesh.rank == 0; }
  // All ranks call it, each with its part of a value of this whole shape; the first one gets the value, the
  // others nothing.
  Recombined collect(const TensorView& mine, const Layout& layout, const Shape& whole) const;
  // "rank 1", or "ranks 0, 1": those of a copy that hold this element or a part of its sum.
  std::string holders(const Recombined& value, const Layout& layout, size_t copy, size_t element) const;

 private:
  Distribution of_rank(int rank) const;
  std::vector<std::byte> bytes_of(int rank, const TensorView& mine, size_t bytes) const;

  RankContext& rank_;
  const Distribution& how_;
};

}  // namespace vitrail
