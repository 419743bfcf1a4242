// Parts of a tensor cut in every dim, against loops over its elements; names of meshes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tensor/layout.h"
#include "tensor/mesh.h"

namespace vitrail {
namespace {

Dim cut(char name, int64_t extent, int64_t offset, int64_t local) {
  Dim dim(name, extent);
  dim.offset = offset, dim.local = local;
  return dim;
}

// The elements of the part in its order, as places in the whole [4 5 6].
std::vector<int> places_of(const Shape& part) {
  std::vector<int> places;
  for (int64_t b = part[0].offset; b < part[0].offset + part[0].local; ++b)
    for (int64_t n = part[1].offset; n < part[1].offset + part[1].local; ++n)
      for (int64_t d = part[2].offset; d < part[2].offset + part[2].local; ++d)
        places.push_back(static_cast<int>((b * 5 + n) * 6 + d));
  return places;
}

TEST(Parts, AreCopiedOutAndIn) {
  std::vector<int> whole(4 * 5 * 6);
  std::iota(whole.begin(), whole.end(), 0);
  for (const Shape& part : {Shape{cut('B', 4, 1, 2), cut('N', 5, 2, 3), cut('D', 6, 1, 4)},
                            Shape{cut('B', 4, 2, 2), cut('N', 5, 0, 5), cut('D', 6, 3, 3)},
                            Shape{cut('B', 4, 0, 4), cut('N', 5, 4, 1), cut('D', 6, 0, 6)},
                            Shape{cut('B', 4, 3, 1), cut('N', 5, 0, 5), cut('D', 6, 0, 6)}}) {
    const std::vector<int> wanted = places_of(part);
    std::vector<int> found(wanted.size(), -1), again(whole.size(), -1);
    copy_out_part(part, sizeof(int), whole.data(), found.data());
    EXPECT_EQ(found, wanted) << to_string(part);
    copy_in_part(part, sizeof(int), found.data(), again.data());
    for (const int place : wanted) EXPECT_EQ(again[static_cast<size_t>(place)], place) << to_string(part);
    EXPECT_EQ(std::count(again.begin(), again.end(), -1), std::ssize(whole) - std::ssize(wanted));
  }
}

TEST(Parts, TheWholeAndAScalarAreCopiedAtOnce) {
  const int whole[] = {1, 2, 3, 4, 5, 6};
  int found[6] = {}, one = 0;
  copy_out_part(Shape{{'B', 2}, {'N', 3}}, sizeof(int), whole, found);
  EXPECT_TRUE(std::equal(whole, whole + 6, found));
  copy_out_part(Shape{}, sizeof(int), whole + 4, &one);
  EXPECT_EQ(one, 5);
  copy_out_part(Shape{cut('B', 2, 1, 0)}, sizeof(int), whole, &one);
  EXPECT_EQ(one, 5) << "an empty part copies nothing";
}

TEST(Mesh, EvenOneRankHasAName) {
  EXPECT_EQ(to_string(Mesh{}), "dp=1");
  EXPECT_EQ(to_string(Mesh{{2, 4, 1, 1}, 3}), "dp=2 tp=4");
}

}  // namespace
}  // namespace vitrail
