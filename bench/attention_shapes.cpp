// Milliseconds and TFLOP/s of the GPU's attention kernels by shape, in bf16: forward as two GEMMs of queries
// x keys x size, backward as five. A kernel that does not take a shape has no figure there. Medians over
// rounds in which the kernels alternate.
//
//     attention_shapes TOKENSxBATCHxHEADSxSIZE ...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "backend/cuda/api/attention_scratch.h"
#include "backend/cuda/plugin.h"

using namespace vitrail;
using namespace vitrail::cuda;

namespace {

constexpr int kRounds = 7, kCalls = 10;

struct Shape {
  long tokens, batch, heads, size;
};

// Device memory with numbers of about normal size.
class Numbers {
 public:
  Numbers(Session& session, size_t bytes) : session_(session), data_(api().session.allocate(session, bytes)) {
    std::vector<uint16_t> some(1 << 20);
    uint32_t state = 1;
    for (uint16_t& number : some) {
      state = state * 1664525 + 1013904223;
      number = static_cast<uint16_t>((state >> 16 & 0x807f) | (0x3f00 + (state >> 3 & 0x80)));  // 0.5 to 2
    }
    for (size_t at = 0; at < bytes; at += some.size() * 2)
      api().streams.upload(session, nullptr, data_ + at, some.data(), std::min(some.size() * 2, bytes - at));
    api().streams.finish(session);
  }
  ~Numbers() { api().session.release(session_, data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  std::byte* data() const { return data_; }

 private:
  Session& session_;
  std::byte* data_;
};

struct Timed {
  const char* name;
  int products;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

void time_all(Session& session, const Shape& s, std::vector<Timed>& kernels) {
  void* const begin = api().streams.create_timestamp(session);
  void* const end = api().streams.create_timestamp(session);
  for (int round = 0; round < kRounds; ++round)
    for (Timed& kernel : kernels) {
      kernel.run();
      api().streams.stamp(session, nullptr, begin);
      for (int call = 0; call < kCalls; ++call) kernel.run();
      api().streams.stamp(session, nullptr, end);
      api().streams.finish(session);
      kernel.seconds.push_back(api().streams.seconds_apart(session, begin, end) / kCalls);
    }
  for (void* event : {begin, end}) api().streams.drop_event(session, event);
  const double work = 2e-12 * static_cast<double>(s.batch * s.heads * s.tokens * s.tokens * s.size);
  std::printf("%ld tokens, batch %ld, %ld heads of %ld:", s.tokens, s.batch, s.heads, s.size);
  for (Timed& kernel : kernels) {
    std::sort(kernel.seconds.begin(), kernel.seconds.end());
    const double median = kernel.seconds[kernel.seconds.size() / 2];
    std::printf("  %s %.4f ms (%.0f)", kernel.name, 1e3 * median, kernel.products * work / median);
  }
  std::printf("\n");
}

void measure(Session& session, const Shape& s) {
  const int64_t width = s.heads * s.size;
  const auto rows = static_cast<size_t>(s.batch * s.tokens);
  const Numbers qkv(session, rows * 6 * width), out(session, rows * 2 * width),
      dout(session, rows * 2 * width), dqkv(session, rows * 6 * width), sums(session, rows * 4 * s.heads);
  const Numbers scratch(session, stream_scratch_bytes(s.batch, s.heads, s.tokens, s.size, false));
  const auto part = [&](const Numbers& of, int64_t i, int64_t parts) {
    return HeadRows{of.data() + 2 * i * width, DType::kBF16, s.tokens * parts * width, parts * width, s.size};
  };
  AttentionCall forward{s.batch, s.heads, s.tokens, s.tokens, s.size};
  AttentionGradCall backward{s.batch, s.heads, s.tokens, s.tokens, s.size};
  forward.scale = backward.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.size)));
  forward.q = backward.q = part(qkv, 0, 3), forward.k = backward.k = part(qkv, 1, 3);
  forward.v = backward.v = part(qkv, 2, 3), forward.out = part(out, 0, 1);
  backward.dout = part(dout, 0, 1), backward.scratch = scratch.data();
  backward.dq = part(dqkv, 0, 3), backward.dk = part(dqkv, 1, 3), backward.dv = part(dqkv, 2, 3);
  AttentionCall keeping = forward;
  keeping.log_sums = reinterpret_cast<float*>(sums.data());
  AttentionGradCall from_kept = backward;
  from_kept.out = forward.out, from_kept.log_sums = keeping.log_sums;
  const AttentionApi& kernels = api().attention;
  std::vector<Timed> timed;
  if (s.tokens <= kShortKeys && s.size <= kShortHeadSize)
    timed.push_back({"short", 2, [&] { kernels.short_forward(session, forward); }});
  timed.push_back({"long", 2, [&] { kernels.long_forward(session, forward); }});
  timed.push_back({"stream", 2, [&] { kernels.stream_forward(session, keeping); }});
  timed.push_back({"backward heads", 5, [&] { kernels.backward(session, backward); }});
  timed.push_back({"stream", 5, [&] { kernels.stream_backward(session, backward); }});
  timed.push_back({"stream from sums", 5, [&] { kernels.stream_backward(session, from_kept); }});
  time_all(session, s, timed);
}

}  // namespace

int main(int argc, char** argv) {
  if (!why_unusable().empty()) return std::fprintf(stderr, "%s\n", why_unusable().c_str()), 1;
  Session* session = api().session.open(0);
  api().session.use(*session);
  for (int i = 1; i < argc; ++i) {
    Shape shape{};
    if (std::sscanf(argv[i], "%ldx%ldx%ldx%ld", &shape.tokens, &shape.batch, &shape.heads, &shape.size) != 4)
      return std::fprintf(stderr, "'%s' is no TOKENSxBATCHxHEADSxSIZE\n", argv[i]), 1;
    measure(*session, shape);
  }
  api().session.close(session);
}
