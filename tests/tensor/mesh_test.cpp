// Places of ranks in a mesh, parts of dims, and the names and sizes of types and categories.
#include "tensor/mesh.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/tensor.h"

namespace vitrail {
namespace {

using Cuts = std::vector<int64_t>;

// Ranks are numbered with tp innermost, then sp, dp and pp.
TEST(MeshPlaces, TpCountsFastestThenSpDpAndPp) {
  const Mesh mesh{{2, 3, 4, 5}, 0};  // dp, tp, sp, pp
  EXPECT_EQ(mesh.world(), 120);
  for (int pp = 0; pp < 5; ++pp)
    for (int dp = 0; dp < 2; ++dp)
      for (int sp = 0; sp < 4; ++sp)
        for (int tp = 0; tp < 3; ++tp) {
          const Mesh at = mesh.of_rank(((pp * 2 + dp) * 4 + sp) * 3 + tp);
          ASSERT_EQ(at.coordinate(Axis::kPipeline), pp);
          ASSERT_EQ(at.coordinate(Axis::kData), dp);
          ASSERT_EQ(at.coordinate(Axis::kSequence), sp);
          ASSERT_EQ(at.coordinate(Axis::kTensor), tp);
          const AxisSet both = AxisSet(Axis::kData).with(Axis::kTensor);
          ASSERT_EQ(at.coordinate(both), dp * 3 + tp);
          ASSERT_EQ(at.group(both), pp * 4 + sp) << "the other two, sp fastest";
          ASSERT_EQ(at.group(AxisSet()), at.rank);
        }
  EXPECT_EQ(mesh.size(AxisSet(Axis::kData).with(Axis::kSequence)), 8);
  EXPECT_EQ(mesh.size(AxisSet()), 1);
  EXPECT_EQ((Mesh{{0, 3, 0, 0}, 2}.size(Axis::kData)), 1) << "an axis that is not used";
}

TEST(MeshPlaces, InWords) {
  const char* names[] = {"dp", "tp", "sp", "pp"};
  for (size_t i = 0; i < kAxisCount; ++i) EXPECT_STREQ(to_string(kAxes[i]), names[i]);
  EXPECT_EQ(to_string(AxisSet(Axis::kPipeline).with(Axis::kData)), "dp x pp");
  EXPECT_EQ(to_string(AxisSet()), "");
  EXPECT_EQ(to_string(Mesh{{1, 2, 3, 4}, 0}), "tp=2 sp=3 pp=4");
  Layout layout;
  EXPECT_EQ(to_string(layout), "");
  EXPECT_TRUE(layout.partial().empty());
  layout[Axis::kTensor] = Placed::partial();
  layout[Axis::kData] = Placed::shard('B');
  EXPECT_EQ(to_string(layout), "dp:S(B) tp:P");
  EXPECT_EQ(layout.partial(), AxisSet(Axis::kTensor));
}

TEST(CutPoints, AreEvenInWholeUnits) {
  EXPECT_EQ(cut_points(10, 3), (Cuts{0, 3, 6, 10}));
  EXPECT_EQ(cut_points(10, 3, 4), (Cuts{0, 4, 8, 10}));
  EXPECT_EQ(cut_points(9, 2, 4), (Cuts{0, 4, 9})) << "three units, the last of one";
  EXPECT_EQ(cut_points(2, 4), (Cuts{0, 0, 1, 1, 2})) << "parts may be empty";
  EXPECT_EQ(cut_points(0, 2), (Cuts{0, 0, 0}));
  Dim dim('N', 20);
  dim.offset = 5, dim.local = 10;
  const Dim part = part_of(dim, {0, 3, 6, 10}, 2);
  EXPECT_EQ(part.offset, 11);
  EXPECT_EQ(part.local, 4);
  EXPECT_EQ(part.extent, 20);
  EXPECT_EQ(whole_of(Shape{dim}), (Shape{{'N', 20}}));
}

TEST(ElementTypes, SizesAndKinds) {
  const struct {
    DType dtype;
    const char* name;
    size_t bytes;
    bool is_float;
  } rows[] = {{DType::kF64, "f64", 8, true},   {DType::kF32, "f32", 4, true},  {DType::kF16, "f16", 2, true},
              {DType::kBF16, "bf16", 2, true}, {DType::kI64, "i64", 8, false}, {DType::kI32, "i32", 4, false},
              {DType::kI16, "i16", 2, false},  {DType::kI8, "i8", 1, false},   {DType::kU8, "u8", 1, false},
              {DType::kBool, "bool", 1, false}};
  for (const auto& row : rows) {
    EXPECT_STREQ(to_string(row.dtype), row.name);
    EXPECT_EQ(size_of(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(is_float(row.dtype), row.is_float) << row.name;
    EXPECT_EQ(accumulator_dtype(row.dtype), row.dtype == DType::kF64 ? DType::kF64 : DType::kF32) << row.name;
  }
}

TEST(Categories, NamesAndWhatASourceHolds) {
  const char* names[] = {"parameters", "gradients", "optimizer",     "saved",
                         "transient",  "scratch",   "communication", "staging"};
  for (size_t i = 0; i < kCategoryCount; ++i) EXPECT_STREQ(to_string(static_cast<Category>(i)), names[i]);
  const size_t before = process_memory().allocated(Category::kGradients);
  {
    const Buffer large(size_t{5} << 20, Category::kGradients), none(0, Category::kGradients);
    EXPECT_EQ(process_memory().allocated(Category::kGradients), before + (size_t{5} << 20));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % (size_t{2} << 20), 0u) << "on large pages";
    EXPECT_EQ(none.data(), nullptr);
  }
  EXPECT_EQ(process_memory().allocated(Category::kGradients), before);
  try {
    const Buffer buffer(size_t{1} << 60, Category::kScratch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot allocate 1152921504606846976 bytes for scratch");
  }
}

TEST(Descriptions, SizesMetExactly) {
  const TensorDesc most{DType::kU8, {{'N', INT64_MAX}}};
  EXPECT_EQ(most.bytes(), static_cast<size_t>(INT64_MAX));
  const TensorDesc beyond{DType::kF16, {{'N', int64_t{1} << 62}}};
  try {
    (void)beyond.bytes();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_EQ(error.message(), "f16[N4611686018427387904] needs more than 2^63 bytes");
  }
}

}  // namespace
}  // namespace vitrail
