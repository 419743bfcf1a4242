// All-reduce and reduce-scatter, in every type that can be summed.
#include <cmath>
#include <numeric>

#include "ranks.h"
#include "values.h"

namespace vitrail {

namespace {
using Kind = Collective::Kind;

Values of_rank(DType dtype, size_t count, int rank) {
  Values values(dtype, count);
  for (size_t i = 0; i < count; ++i) values.set(i, mixed(i, rank));
  return values;
}

Values summed(DType dtype, size_t first, size_t count, int size) {
  Values values(dtype, count);
  for (size_t i = 0; i < count; ++i) {
    int sum = 0;
    for (int r = 0; r < size; ++r) sum += mixed(first + i, r);
    values.set(i, sum);
  }
  return values;
}

void all_reduce(Communicator& comm) {
  for (DType dtype : kSummed)
    for (size_t n : kCounts) {
      Values in = of_rank(dtype, n, comm.rank()), before = in, out(dtype, n, 1),
             want = summed(dtype, 0, n, comm.size());
      comm.run({.kind = Kind::kAllReduce, .dtype = dtype, .in = in.data(), .out = out.data(), .counts = {n}});
      expect_equal(out, want, "all-reduce");
      expect_equal(in, before, "input of all-reduce");
      comm.run({.kind = Kind::kAllReduce, .dtype = dtype, .in = in.data(), .out = in.data(), .counts = {n}});
      expect_equal(in, want, "all-reduce in place");
    }
}

// Pieces of a prime size, of nothing, of one element and of many.
std::vector<size_t> uneven(int size, size_t base) {
  std::vector<size_t> counts;
  counts.reserve(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) counts.push_back(r % 3 == 1 ? 0 : base + static_cast<size_t>(r) * 13);
  return counts;
}

void reduce_scatter(Communicator& comm) {
  const auto me = static_cast<size_t>(comm.rank());
  for (DType dtype : kSummed)
    for (size_t base : kCounts) {
      const std::vector<size_t> counts = uneven(comm.size(), base);
      const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
      const size_t first = std::accumulate(counts.begin(), counts.begin() + comm.rank(), size_t{0});
      Values in = of_rank(dtype, all, comm.rank()), out(dtype, counts[me]);
      Values want = summed(dtype, first, counts[me], comm.size());
      comm.run({.kind = Kind::kReduceScatter,
                .dtype = dtype,
                .in = in.data(),
                .out = out.data(),
                .counts = counts});
      expect_equal(out, want, "reduce-scatter");
      comm.run({.kind = Kind::kReduceScatter,
                .dtype = dtype,
                .in = in.data(),
                .out = in.at(first),
                .counts = counts});
      if (counts[me] > 0) std::memcpy(out.data(), in.at(first), counts[me] * size_of(dtype));
      expect_equal(out, want, "reduce-scatter in place");
    }
}

// Numbers of very different sizes, so that another order of summing would give other bits.
std::vector<float> rough(size_t count, int rank) {
  std::vector<float> values(count);
  uint32_t state = 12345u + static_cast<uint32_t>(rank) * 7919u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value =
        std::ldexp(static_cast<float>(static_cast<int32_t>(state)), static_cast<int>(state >> 8) % 24 - 40);
  }
  return values;
}

Values rough_values(DType dtype, size_t count, int rank) {
  const std::vector<float> source = rough(count, rank);
  Values values(dtype, count);
  convert_floats(source.data(), DType::kF32, values.data(), dtype, count);
  return values;
}

// Every rank sees the bits of rank 0, and the bits of the first time.
void same_bits(Communicator& comm) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16})
    for (size_t n : {size_t{1}, size_t{3}, size_t{1009}, size_t{65537}, size_t{300007}}) {
      Values first(dtype, 0);
      for (int time = 0; time < 3; ++time) {
        Values in = rough_values(dtype, n, comm.rank()), out(dtype, n);
        comm.run(
            {.kind = Kind::kAllReduce, .dtype = dtype, .in = in.data(), .out = out.data(), .counts = {n}});
        if (time == 0) first = out;
        expect_equal(out, first, "the same sum again");
        Values root = out;
        comm.run({.kind = Kind::kBroadcast, .dtype = dtype, .out = root.data(), .counts = {n}});
        expect_equal(out, root, "the sum on rank 0");
      }
    }
}

// 16-bit types are summed in f32 and rounded once: 256 + 1 + 1 ... in bf16 would stay 256.
void rounds_once(Communicator& comm) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    const float large = dtype == DType::kBF16 ? 256.0f : 2048.0f;
    const float given = comm.rank() == 0 ? large : 1.0f;
    uint16_t value = dtype == DType::kBF16 ? f32_to_bf16(given) : f32_to_f16(given);
    comm.run({.kind = Kind::kAllReduce, .dtype = dtype, .in = &value, .out = &value, .counts = {1}});
    const float exact = large + static_cast<float>(comm.size() - 1);
    EXPECT_EQ(value, dtype == DType::kBF16 ? f32_to_bf16(exact) : f32_to_f16(exact)) << to_string(dtype);
  }
}

void wraps_and_keeps_nan(Communicator& comm) {
  int32_t whole = INT32_MAX;
  comm.run({.kind = Kind::kAllReduce, .dtype = DType::kI32, .in = &whole, .out = &whole, .counts = {1}});
  EXPECT_EQ(static_cast<uint32_t>(whole),
            static_cast<uint32_t>(comm.size()) * static_cast<uint32_t>(INT32_MAX));
  float number = comm.rank() == comm.size() - 1 ? NAN : 1.0f;
  comm.run({.kind = Kind::kAllReduce, .dtype = DType::kF32, .in = &number, .out = &number, .counts = {1}});
  EXPECT_TRUE(std::isnan(number));
}
}  // namespace

std::vector<Case> sum_cases() {
  return {{"AllReduce", all_reduce},
          {"ReduceScatter", reduce_scatter},
          {"SameBits", same_bits},
          {"RoundsOnce", rounds_once},
          {"WrapsAndKeepsNan", wraps_and_keeps_nan}};
}

}  // namespace vitrail
