// GFLOP/s of the products of ViT-B, own kernels and OpenBLAS tiles, and of its attention, against the FMA
// peak measured in the same run. Medians over alternating rounds: gemm_shapes [threads] [rounds].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "backend/cpu/blas.h"
#include "backend/cpu/cpu_isa.h"

using namespace vitrail;

namespace {

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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

// A product whose operands stay in L1 keeps the FMA units as busy as they get.
double peak_gflops(CpuLane lane) {
  const int64_t rows = lane.isa.mr, k = 128, repeats = 3000;
  const AlignedFloats a(static_cast<size_t>(rows * k)), w(static_cast<size_t>(lane.isa.nr * k));
  const auto tile = [&](int64_t, int worker) {
    std::vector<float> c(static_cast<size_t>(rows * lane.isa.nr)), scratch(c.size() + 16);
    (void)worker;
    for (int64_t i = 0; i < repeats; ++i) {
      GemmTile t{.a = a.data,
                 .lda = k,
                 .packed = w.data,
                 .c = c.data(),
                 .ldc = lane.isa.nr,
                 .rows = rows,
                 .n = lane.isa.nr,
                 .k = k,
                 .col_begin = 0,
                 .col_end = lane.isa.nr,
                 .epilogue = {},
                 .scratch = scratch.data()};
      lane.isa.gemm_tile(t);
    }
  };
  const double time = seconds([&] { lane.pool.run(lane.pool.threads(), tile); });
  return 2e-9 * static_cast<double>(rows * lane.isa.nr * k * repeats) * lane.pool.threads() / time;
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

void measure(const Shape& s, ThreadPool& pool, const IsaKernels& isa, int rounds) {
  const AlignedFloats a(static_cast<size_t>(s.m * s.k)), w(static_cast<size_t>(s.n * s.k)),
      bias(static_cast<size_t>(s.n));
  const AlignedFloats packed(static_cast<size_t>(isa.packed_elems(s.n, s.k))),
      c(static_cast<size_t>(s.m * s.n));
  const size_t bytes = std::max(linear_scratch(isa, s.m, s.n, s.k, false).total(pool.threads()),
                                blas_linear_scratch(isa, s.m, s.n, s.k, false).total(pool.threads()));
  const AlignedFloats scratch(bytes / 4);
  const CpuLane lane{pool, isa, {}, {reinterpret_cast<std::byte*>(scratch.data), bytes}};
  parallel_pack_weights(lane, w.data, s.n, s.k, packed.data);
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
  std::vector<double> own, blas, peak;
  for (int round = 0; round < rounds; ++round) {
    peak.push_back(peak_gflops(lane));
    own.push_back(gflop / seconds([&] { parallel_linear(lane, args); }));
    if (blas_missing_reason().empty())
      blas.push_back(gflop / seconds([&] { parallel_blas_linear(lane, args, w.data); }));
  }
  const double top = median(peak);
  std::printf("%-9s %5ldx%ldx%ld  own %6.1f (%4.1f%%)", s.name, static_cast<long>(s.m),
              static_cast<long>(s.n), static_cast<long>(s.k), median(own), 100 * median(own) / top);
  if (!blas.empty()) std::printf("  OpenBLAS tiles %6.1f (%4.1f%%)", median(blas), 100 * median(blas) / top);
  std::printf("  FMA peak %6.1f\n", top);
}

void measure_attention(int64_t batch, ThreadPool& pool, const IsaKernels& isa, int rounds) {
  constexpr int64_t kHeads = 12, kTokens = 197, kSize = 64, kWidth = kHeads * kSize;
  const AlignedFloats qkv(static_cast<size_t>(batch * kTokens * 3 * kWidth)),
      out(static_cast<size_t>(batch * kTokens * kWidth));
  const size_t bytes = attention_scratch(isa, batch, kHeads, kTokens, kTokens, kSize).total(pool.threads());
  const AlignedFloats scratch(bytes / 4);
  const CpuLane lane{pool, isa, {}, {reinterpret_cast<std::byte*>(scratch.data), bytes}};
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
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round)
    times.push_back(seconds([&] { parallel_attention(lane, args); }));
  const double time = median(times),
               gflop = 4e-9 * static_cast<double>(batch * kHeads * kTokens * kTokens * kSize);
  std::printf("attention %ldx12x197x64  %.3f ms, %.1f GFLOP/s\n", static_cast<long>(batch), time * 1e3,
              gflop / time);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 31;
  ThreadPool pool(threads);
  const IsaKernels& isa = isa_kernels(best_isa());
  std::printf("%s, %d threads, %d rounds, medians, GFLOP/s\n", isa.name, threads, rounds);
  for (const Shape& shape : kShapes) measure(shape, pool, isa, shape.m > 1000 ? rounds / 3 + 1 : rounds);
  for (int64_t batch : {1, 8}) measure_attention(batch, pool, isa, rounds);
  const double empty = seconds([&] {
    for (int i = 0; i < 10000; ++i) pool.run(2 * threads, [](int64_t, int) {});
  });
  std::printf("empty run() %.2f us\n", empty * 100);
}
