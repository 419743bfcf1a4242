#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <utility>

#include "tensor/buffer.h"

namespace vitrail {
namespace {

TEST(Shape, PrintsAndFindsDimsByName) {
  const Shape shape = {{'B', 2}, {'N', 197}, {'D', 192}};
  EXPECT_EQ(to_string(shape), "[B2 N197 D192]");
  EXPECT_EQ(shape.local('N'), 197);
  EXPECT_EQ(shape.elems(), 2 * 197 * 192);
  EXPECT_FALSE(shape.has('K'));
  EXPECT_THROW(shape.local('K'), Error);
}

TEST(Shape, ANameOccursOnce) {
  EXPECT_THROW((Shape{{'D', 2}, {'D', 3}}), Error);
}

TEST(Shape, RefusesNegativeAndOverflowingExtents) {
  EXPECT_THROW((Shape{{'D', -1}}), Error);
  const Shape huge = {{'B', int64_t{1} << 33}, {'N', int64_t{1} << 31}};
  EXPECT_THROW(huge.elems(), Error);
}

TEST(Shape, AScalarHasOneElement) {
  EXPECT_EQ(Shape().elems(), 1);
}

TEST(Shape, AShardShowsWholeExtentAndItsPart) {
  Dim part('N', 197);
  part.local = 99;
  part.offset = 98;
  const Shape shape = Shape{{'B', 1}, {'N', 197}}.with('N', part);
  EXPECT_EQ(to_string(shape), "[B1 N197(98+99)]");
  EXPECT_EQ(shape.elems(), 99);
}

TEST(TensorDesc, PackedBytesReplaceRowMajorOnes) {
  TensorDesc desc{DType::kF32, {{'F', 10}, {'D', 3}}};
  EXPECT_EQ(desc.bytes(), 120u);
  desc.packing = "panels";
  desc.packed_bytes = 192;
  EXPECT_EQ(desc.bytes(), 192u);
  EXPECT_EQ(to_string(desc), "f32[F10 D3]@panels");
}

TEST(TensorDesc, BytesNeverWrap) {
  const TensorDesc huge{DType::kF32, {{'B', int64_t{1} << 31}, {'N', int64_t{1} << 31}}};
  EXPECT_THROW(huge.bytes(), Error);
}

TEST(TensorView, RefusesToBeReadAsWhatItIsNot) {
  float data[3] = {1, 2, 3};
  const TensorView view(data, {DType::kF32, {{'D', 3}}});
  EXPECT_EQ(view.as<float>()[2], 3.0f);
  EXPECT_THROW(view.as<double>(), Error);
  const TensorView packed(
      data, {.dtype = DType::kF32, .shape = {{'D', 3}}, .packing = "panels", .packed_bytes = 12});
  EXPECT_THROW(packed.as<float>(), Error);
}

TEST(Buffer, IsAlignedCountedAndReleased) {
  const size_t before = Buffer::allocated(Category::kSaved);
  {
    Buffer buffer(1000, Category::kSaved);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % Buffer::kAlignment, 0u);
    EXPECT_EQ(Buffer::allocated(Category::kSaved), before + 1000);
    Buffer moved = std::move(buffer);
    EXPECT_EQ(moved.bytes(), 1000u);
    EXPECT_EQ(buffer.data(), nullptr);  // NOLINT: what a moved-from buffer holds is the point
    EXPECT_EQ(Buffer::allocated(Category::kSaved), before + 1000);
    moved = Buffer(10, Category::kSaved);
    EXPECT_EQ(Buffer::allocated(Category::kSaved), before + 10);
  }
  EXPECT_EQ(Buffer::allocated(Category::kSaved), before);
}

TEST(Buffer, TooLargeIsAMemoryError) {
  try {
    const Buffer buffer(size_t{1} << 60, Category::kScratch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  }
}

}  // namespace
}  // namespace vitrail
