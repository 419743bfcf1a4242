// Buckets: the flat groups in which ranks exchange gradients, and with ZeRO own optimizer state, gradients
// and parameters. A bucket holds consecutive parameters whose gradients are summed over the same axes; its
// members lie in it at multiples of 64 bytes, so that every category of memory can follow the same offsets.
#pragma once

#include <map>

#include "passes/distribute.h"
#include "passes/precision.h"

namespace vitrail {

// The step of offsets and pieces, in elements: 64 bytes of f32. Other types keep the same elements.
inline constexpr int64_t kBucketStep = 16;

struct Bucket {
  struct Member {
    std::string parameter;
    TensorDesc desc;  // of the gradient sum, as this rank holds it
    int64_t offset = 0;
  };
  std::string name;  // "gradients/0", the value that holds the sums of all members
  DType dtype = DType::kF32;
  AxisSet axes;  // along which the sums are partial
  std::vector<Member> members;
  int64_t elems = 0;

  // The pieces that the ranks of an axis own, as cut points at multiples of 64 bytes.
  std::vector<int64_t> pieces(int ranks) const;
};

// `gradients` are the layouts of the sums in `program`; one that is not there is whole. Members are in the
// order in which their gradients come; with `by_block`, a bucket is what one block reads. `bucket_bytes` 0
// stands for a quarter of the sums, so that the first are exchanged while others are made, and 25 MiB at
// most. All of `tensor_ranks` ranks of tp close their buckets behind the same member, however it is cut.
std::vector<Bucket> make_buckets(const Program& program, const std::map<std::string, Layout>& gradients,
                                 size_t bucket_bytes, bool by_block = false, int tensor_ranks = 1);

// The parameters that a program reads and that no gradient is summed for, by block, as buckets without axes.
std::vector<Bucket> frozen_buckets(const Program& program, const std::vector<Bucket>& trained,
                                   const std::vector<LowCopy>& copies);

// Lets the sums of a program lie in their buckets.
void place_in_buckets(Program& program, const std::vector<Bucket>& buckets);

// The value that is a bucket's memory.
Value bucket_value(const Bucket& bucket);

// Adds the sums over ranks to a micro program: the sum of a bucket starts as soon as its last member is
// complete, and all are waited for at the end. With `scatter`, a rank gets its piece alone.
Program reduce_gradients(const Program& micro, const std::vector<Bucket>& buckets, const Mesh& mesh,
                         bool scatter);

}  // namespace vitrail
