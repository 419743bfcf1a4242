// The micro-kernel, which loads values early, with operands that end where readable memory ends.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "backend/cpu_test_util.h"

namespace vitrail {
namespace {

using namespace testing;

// Random values right before a page that may not be touched.
class Fenced {
 public:
  Fenced(int64_t count, uint32_t seed) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * sizeof(float), room = (bytes + page - 1) / page * page;
    size_ = room + page;
    start_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (start_ == MAP_FAILED || mprotect(start_ + room, page, PROT_NONE) != 0) throw std::bad_alloc();
    values_ = reinterpret_cast<float*>(start_ + room - bytes);
    const Floats random = random_floats(count, seed);
    std::copy(random.begin(), random.end(), values_);
  }
  ~Fenced() { munmap(start_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  float* data() const { return values_; }
  float operator[](int64_t i) const { return values_[i]; }

 private:
  std::byte* start_;
  size_t size_;
  float* values_;
};

void check(const IsaKernels& isa, int64_t rows, int64_t cols, int64_t k, bool transposed) {
  SCOPED_TRACE(::testing::Message() << rows << " rows, " << cols << " columns, k " << k << ", transposed "
                                    << transposed);
  const Fenced a(rows * k, 1), panel(k * isa.nr, 2), out(rows * isa.nr, 3);
  const int64_t lda = transposed ? rows : k;
  isa.panel_gemm({a.data(), lda, rows, panel.data(), cols, k, transposed, out.data()});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += static_cast<double>(a[transposed ? p * lda + r : r * lda + p]) * panel[p * isa.nr + j];
      ASSERT_NEAR(out[r * isa.nr + j], sum, 1e-6 * static_cast<double>(k)) << "at " << r << ", " << j;
    }
  }
}

TEST(CpuMicro, ReadsNothingPastItsOperands) {
  for_every_level([](const IsaKernels& isa) {
    for (int64_t rows = 1; rows <= isa.mr + 1; ++rows)
      for (int64_t cols = 1; cols <= isa.nr; cols += 5)
        for (const int64_t k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16})
          for (const bool transposed : {false, true}) check(isa, rows, cols, k, transposed);
  });
}

}  // namespace
}  // namespace vitrail
