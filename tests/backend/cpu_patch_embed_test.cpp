// Patch embeddings with packed weights against plain loops in f64 over gathered patches.
#include <gtest/gtest.h>

#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct PatchCase {
  int64_t batch, channels, height, width, patch_h, patch_w, n;
};

class CpuPatchEmbed : public ::testing::TestWithParam<PatchCase> {};

TEST_P(CpuPatchEmbed, EqualsAProductOfGatheredPatches) {
  const PatchCase c = GetParam();
  const int64_t down = c.height / c.patch_h, across = c.width / c.patch_w, patches = down * across;
  const int64_t k = c.channels * c.patch_h * c.patch_w, tokens = patches + 1;
  const Floats image = random_floats(c.batch * c.channels * c.height * c.width, 1),
               w = random_floats(c.n * k, 2);
  const Floats bias = random_floats(c.n, 3), positions = random_floats(patches * c.n, 4);
  for (IsaLevel level : available_isa_levels()) {
    const IsaKernels& isa = isa_kernels(level);
    Floats packed(static_cast<size_t>(isa.packed_elems(c.n, k)));
    isa.pack_weights(w.data(), c.n, k, packed.data());
    Floats out(static_cast<size_t>(c.batch * tokens * c.n), -7.0f);
    const PatchEmbedArgs args{image.data(),
                              c.batch,
                              c.channels,
                              c.height,
                              c.width,
                              c.patch_h,
                              c.patch_w,
                              packed.data(),
                              c.n,
                              out.data() + c.n,
                              c.n,
                              tokens * c.n,
                              {bias.data(), Activation::kNone, nullptr, positions.data(), c.n}};
    TestContext test(3, isa, patch_embed_scratch(isa, args));
    parallel_patch_embed(test.context(), args);
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t j = 0; j < c.n; ++j) EXPECT_EQ(out[static_cast<size_t>(b * tokens * c.n + j)], -7.0f);
      for (int64_t patch = 0; patch < patches; ++patch) {
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = bias[static_cast<size_t>(j)] + positions[static_cast<size_t>(patch * c.n + j)],
                 magnitude = 2;
          for (int64_t p = 0; p < k; ++p) {
            const int64_t channel = p / (c.patch_h * c.patch_w), y = p / c.patch_w % c.patch_h,
                          x = p % c.patch_w;
            const int64_t row = patch / across * c.patch_h + y, column = patch % across * c.patch_w + x;
            const double term =
                static_cast<double>(w[static_cast<size_t>(j * k + p)]) *
                image[static_cast<size_t>(((b * c.channels + channel) * c.height + row) * c.width + column)];
            sum += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(out[static_cast<size_t>((b * tokens + 1 + patch) * c.n + j)], sum,
                      sum_tolerance(DType::kF32, k, magnitude));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuPatchEmbed,
                         ::testing::Values(PatchCase{1, 3, 32, 32, 16, 16, 33},
                                           PatchCase{2, 1, 28, 42, 14, 14, 16},
                                           PatchCase{3, 5, 12, 20, 4, 5, 7},
                                           PatchCase{1, 3, 224, 224, 16, 16, 5}));

}  // namespace
}  // namespace vitrail
