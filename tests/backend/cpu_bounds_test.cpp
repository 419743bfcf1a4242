// CPU drivers read and write their operands and nothing beyond: each operand ends where readable memory ends,
// or has guards around it.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <new>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/attention/first_token.h"
#include "backend/cpu_test_util.h"

namespace vitrail {
namespace {

using namespace testing;

// Floats that end where the memory does: the next one cannot be read.
class AtTheEnd {
 public:
  explicit AtTheEnd(const Floats& values) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(float);
    held_ = (bytes + page - 1) / page * page;
    memory_ = ::mmap(nullptr, held_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(static_cast<char*>(memory_) + held_, page, PROT_NONE);
    size_ = held_ + page;
    data_ = reinterpret_cast<float*>(static_cast<char*>(memory_) + held_ - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  ~AtTheEnd() { ::munmap(memory_, size_); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  float* data() const { return data_; }

 private:
  void* memory_ = nullptr;
  size_t held_ = 0, size_ = 0;
  float* data_ = nullptr;
};

// A result among guards, which nobody may write.
class GuardedFloats {
 public:
  explicit GuardedFloats(int64_t count) : floats_(static_cast<size_t>(count) + 2 * kGuards, 42.0f) {}
  float* data() { return floats_.data() + kGuards; }
  Floats values() const { return {floats_.begin() + kGuards, floats_.end() - kGuards}; }
  bool intact() const {
    const auto is_guard = [](float f) { return f == 42.0f; };
    return std::all_of(floats_.begin(), floats_.begin() + kGuards, is_guard) &&
           std::all_of(floats_.end() - kGuards, floats_.end(), is_guard);
  }

 private:
  static constexpr int64_t kGuards = 64;
  Floats floats_;
};

// The weights of attention with q [queries E] and k [keys E] of one head, in double.
std::vector<double> plain_weights(const Floats& q, const Floats& k, int64_t queries, int64_t keys,
                                  int64_t size, double scale) {
  std::vector<double> all;
  for (int64_t i = 0; i < queries; ++i) {
    std::vector<double> row;
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t e = 0; e < size; ++e)
        score += static_cast<double>(q[static_cast<size_t>(i * size + e)]) *
                 static_cast<double>(k[static_cast<size_t>(j * size + e)]);
      row.push_back(std::exp(score * scale));
      sum += row.back();
    }
    for (const double weight : row) all.push_back(weight / sum);
  }
  return all;
}

TEST(CpuBounds, AttentionWeightsReadTheKeysAlone) {
  for_every_level([](const IsaKernels& isa) {
    for (const auto& [queries, keys, size] :
         {std::array<int64_t, 3>{1, 1, 1}, {3, 1, 4}, {1, 5, 16}, {7, 33, 3}, {50, 197, 64}}) {
      const Floats q = random_floats(queries * size, 1), k = random_floats(keys * size, 2);
      const AtTheEnd queries_end(q), keys_end(k);
      GuardedFloats out(queries * keys);
      TestContext test(1, isa, attention_probs_scratch(isa, queries, keys, size));
      const AttentionView mine{queries * size, size, size}, theirs{keys * size, size, size};
      AttentionArgs args{.q = queries_end.data(),
                         .k = keys_end.data(),
                         .q_strides = mine,
                         .k_strides = theirs,
                         .out = out.data(),
                         .batch = 1,
                         .heads = 1,
                         .queries = queries,
                         .keys = keys,
                         .head_size = size,
                         .scale = 0.5f};
      parallel_attention_probs(test.context(), args);
      EXPECT_TRUE(out.intact());
      const std::vector<double> wanted = plain_weights(q, k, queries, keys, size, 0.5);
      const Floats found = out.values();
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5) << i;
    }
  });
}

// With one token its weight is 1: the result is its value, W_v x + b_v.
TEST(CpuBounds, TheAttentionOfOneTokenReadsTheTokensAlone) {
  constexpr int64_t kHeads = 2, kSize = 3, kOuts = kHeads * kSize;
  for_every_level([](const IsaKernels& isa) {
    for (const int64_t width : {1, 6, 16, 33})
      for (const int64_t batch : {1, 3}) {
        const Floats x = random_floats(batch * width, 1), w = random_floats(3 * kOuts * width, 2),
                     bias = random_floats(3 * kOuts, 3);
        const AtTheEnd tokens(x), weight(w), row(bias);
        GuardedFloats out(batch * kOuts);
        FirstAttentionArgs args{.x = tokens.data(),
                                .weight = weight.data(),
                                .bias = row.data(),
                                .out = out.data(),
                                .batch = batch,
                                .tokens = 1,
                                .width = width,
                                .heads = kHeads,
                                .head_size = kSize,
                                .norm = {},
                                .scale = 0.5f};
        TestContext test(1, isa, first_attention_scratch(isa, args, false));
        parallel_first_attention(test.context(), args);
        EXPECT_TRUE(out.intact());
        const Floats found = out.values();
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t o = 0; o < kOuts; ++o) {
            double wanted = bias[static_cast<size_t>(2 * kOuts + o)];
            for (int64_t i = 0; i < width; ++i)
              wanted += static_cast<double>(x[static_cast<size_t>(b * width + i)]) *
                        static_cast<double>(w[static_cast<size_t>((2 * kOuts + o) * width + i)]);
            ASSERT_NEAR(found[static_cast<size_t>(b * kOuts + o)], wanted, 1e-5) << width << " " << b;
          }
      }
  });
}

}  // namespace
}  // namespace vitrail
