// GFLOP/s of ViT-B's GEMMs (own kernels in f32, bf16 and int8, and oneDNN tiles) and of its attention,
// against the FMA peak measured in the same run: by wall time, and by processor time per core, which a shared
// machine disturbs less. Medians over alternating rounds.
//
//     gemm_shapes [threads,threads,...] [rounds] [instruction set]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/gemm/onednn.h"
#include "backend/cpu/host/levels.h"
#include "backend/cpu/lowp/lowp_gemm.h"

using namespace vitrail;
using namespace vitrail::cpu;

namespace {

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Samples of one kind of work in GFLOP/s, by wall time and by the processor time of all threads.
struct Rates {
  std::vector<double> wall, core;

  void measure(double gflop, const std::function<void()>& body) {
    const double wall_start = now(CLOCK_MONOTONIC), core_start = now(CLOCK_PROCESS_CPUTIME_ID);
    body();
    core.push_back(gflop / (now(CLOCK_PROCESS_CPUTIME_ID) - core_start));
    wall.push_back(gflop / (now(CLOCK_MONOTONIC) - wall_start));
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct AlignedFloats {
  explicit AlignedFloats(size_t count)
      : data(static_cast<float*>(std::aligned_alloc(64, (count * 4 + 127) / 64 * 64))) {
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i * 2654435761u % 1024) / 512.0f - 1.0f;
  }
  ~AlignedFloats() { std::free(data); }
  AlignedFloats(const AlignedFloats&) = delete;
  AlignedFloats& operator=(const AlignedFloats&) = delete;
  float* data;
};

void measure_peak(const CpuContext& context, Rates& rates) {
  constexpr int64_t kRounds = 400'000;
  const double gflop = 1e-9 * static_cast<double>(context.isa.spin_flops * kRounds) * context.pool.threads();
  std::vector<float> results(static_cast<size_t>(context.pool.threads()));
  rates.measure(gflop, [&] {
    context.pool.run(context.pool.threads(), [&](int64_t task, int) {
      results[static_cast<size_t>(task)] = context.isa.spin(kRounds);
    });
  });
}

void print(const char* what, const Rates& rates, const Rates& peak) {
  if (rates.wall.empty()) return;
  std::printf("  %s %6.1f (%3.0f%%), per core %5.1f (%3.0f%%)", what, median(rates.wall),
              100 * median(rates.wall) / median(peak.wall), median(rates.core),
              100 * median(rates.core) / median(peak.core));
}

struct Shape {
  const char* name;
  int64_t m, n, k;
  Activation act = Activation::kNone;
};

constexpr Shape kShapes[] = {
    {"qkv", 197, 2304, 768},
    {"proj", 197, 768, 768},
    {"fc1+gelu", 197, 3072, 768, Activation::kGeluErf},
    {"fc2", 197, 768, 3072},
    {"qkv", 1576, 2304, 768},
    {"proj", 1576, 768, 768},
    {"fc1+gelu", 1576, 3072, 768, Activation::kGeluErf},
    {"fc2", 1576, 768, 3072},
    {"L fc1", 197, 4096, 1024},
    {"L fc2", 197, 1024, 4096},
};

// The same GEMM in low precision with its weight packed before; the rounding of the rows is timed.
struct LowpGemm {
  const LowpKernels& kernels;
  AlignedFloats packed;
  Rates rates;

  LowpGemm(const LowpKernels& k, const Shape& s, const CpuContext& context, const float* w)
      : kernels(k), packed(static_cast<size_t>(k.packed_bytes(s.n, s.k)) / 4 + 1) {
    parallel_lowp_pack(context, kernels, w, s.n, s.k, bytes());
  }
  std::byte* bytes() const { return reinterpret_cast<std::byte*>(packed.data); }
  void measure(double gflop, const CpuContext& context, const LinearArgs& args) {
    rates.measure(gflop, [&] { parallel_lowp_linear(context, kernels, args, bytes()); });
  }
};

size_t scratch_bytes(const Shape& s, const IsaKernels& isa, int threads) {
  size_t bytes = linear_scratch(isa, s.m, s.n, s.k, false).total(threads);
  for (const ScratchNeed& need : {library_linear_scratch(isa, s.m, s.n, s.k, false),
                                  lowp_linear_scratch(isa.bf16, s.m, s.n, s.k, false),
                                  lowp_linear_scratch(isa.int8, s.m, s.n, s.k, false)})
    bytes = std::max(bytes, need.total(threads));
  return bytes;
}

void measure(const Shape& s, ThreadPool& pool, const IsaKernels& isa, int rounds) {
  const AlignedFloats a(static_cast<size_t>(s.m * s.k)), w(static_cast<size_t>(s.n * s.k)),
      bias(static_cast<size_t>(s.n));
  const AlignedFloats packed(static_cast<size_t>(isa.packed_elems(s.n, s.k))),
      c(static_cast<size_t>(s.m * s.n));
  const size_t bytes = scratch_bytes(s, isa, pool.threads());
  const AlignedFloats scratch(bytes / 4);
  const CpuContext context{pool, isa, {}, {reinterpret_cast<std::byte*>(scratch.data), bytes}};
  parallel_pack_weights(context, w.data, s.n, s.k, packed.data);
  const LinearArgs args{.a = a.data,
                        .lda = s.k,
                        .packed = packed.data,
                        .c = c.data,
                        .ldc = s.n,
                        .m = s.m,
                        .n = s.n,
                        .k = s.k,
                        .norm = {},
                        .epilogue = {.bias = bias.data, .act = s.act}};
  const double gflop = 2e-9 * static_cast<double>(s.m * s.n * s.k);
  LowpGemm bf16(isa.bf16, s, context, w.data), int8(isa.int8, s, context, w.data);
  Rates own, library, peak;
  for (int round = 0; round < rounds; ++round) {
    measure_peak(context, peak);
    own.measure(gflop, [&] { parallel_linear(context, args); });
    bf16.measure(gflop, context, args);
    int8.measure(gflop, context, args);
    if (onednn().missing.empty())
      library.measure(gflop, [&] { parallel_library_linear(context, onednn(), args, w.data); });
  }
  std::printf("%-9s %4ldx%4ldx%4ld", s.name, static_cast<long>(s.m), static_cast<long>(s.n),
              static_cast<long>(s.k));
  print("own", own, peak);
  print(" bf16", bf16.rates, peak);
  print(" int8", int8.rates, peak);
  print(" oneDNN", library, peak);
  print(" peak", peak, peak);
  std::printf("\n");
}

void measure_attention(int64_t batch, ThreadPool& pool, const IsaKernels& isa, int rounds) {
  constexpr int64_t kHeads = 12, kTokens = 197, kSize = 64, kWidth = kHeads * kSize;
  const AlignedFloats qkv(static_cast<size_t>(batch * kTokens * 3 * kWidth)),
      out(static_cast<size_t>(batch * kTokens * kWidth));
  const size_t bytes = attention_scratch(isa, kTokens, kTokens, kSize).total(pool.threads());
  const AlignedFloats scratch(bytes / 4);
  const CpuContext context{pool, isa, {}, {reinterpret_cast<std::byte*>(scratch.data), bytes}};
  const AttentionView in{kTokens * 3 * kWidth, 3 * kWidth, kSize};
  const AttentionArgs args{qkv.data,
                           qkv.data + kWidth,
                           qkv.data + 2 * kWidth,
                           in,
                           in,
                           in,
                           out.data,
                           {kTokens * kWidth, kWidth, kSize},
                           batch,
                           kHeads,
                           kTokens,
                           kTokens,
                           kSize,
                           0.125f};
  const double gflop = 4e-9 * static_cast<double>(batch * kHeads * kTokens * kTokens * kSize);
  Rates rates;
  for (int round = 0; round < rounds; ++round)
    rates.measure(gflop, [&] { parallel_attention(context, args); });
  std::printf("attention %ldx12x197x64  %.3f ms, %.1f GFLOP/s, per core %.1f\n", static_cast<long>(batch),
              1e3 * gflop / median(rates.wall), median(rates.wall), median(rates.core));
}

void measure_all(int threads, int rounds, const IsaKernels& isa) {
  ThreadPool pool(threads);
  std::printf("%s, %d threads, %d rounds, medians, GFLOP/s\n", isa.name, threads, rounds);
  for (const Shape& shape : kShapes) measure(shape, pool, isa, shape.m > 1000 ? rounds / 3 + 1 : rounds);
  for (int64_t batch : {1, 8}) measure_attention(batch, pool, isa, rounds);
  Rates empty;
  empty.measure(10000, [&] {
    for (int i = 0; i < 10000; ++i) pool.run(2 * threads, [](int64_t, int) {});
  });
  std::printf("empty run() %.2f us\n", 1e6 / empty.wall[0]);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 31;
  IsaLevel level = best_isa();
  for (IsaLevel each : available_isa_levels())
    if (argc > 3 && std::string(argv[3]) == to_string(each)) level = each;
  std::istringstream list(argc > 1 ? argv[1] : "2");
  for (std::string threads; std::getline(list, threads, ',');)
    measure_all(std::atoi(threads.c_str()), rounds, isa_kernels(level));
}
