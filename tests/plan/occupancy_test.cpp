#include "plan/occupancy.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace vitrail {
namespace {

struct Block {
  int first, last;
  size_t bytes, offset;
};

// Applies the definition: the lowest offset at which nothing lies that is alive at the same time.
size_t lowest_by_trying(const std::vector<Block>& placed, const Block& block) {
  const auto clash = [&](size_t offset) -> const Block* {
    for (const Block& other : placed)
      if (other.first <= block.last && block.first <= other.last && offset < other.offset + other.bytes &&
          other.offset < offset + block.bytes)
        return &other;
    return nullptr;
  };
  size_t lowest = SIZE_MAX;
  std::vector<size_t> ends = {0};
  for (const Block& other : placed) ends.push_back(other.offset + other.bytes);
  for (const size_t end : ends)
    if (end < lowest && !clash(end)) lowest = end;
  return lowest;
}

TEST(Occupancy, FindsTheLowestPlaceThatIsFree) {
  for (uint64_t round = 0; round < 40; ++round) {
    uint64_t drawn = 0;
    const auto draw = [&](uint64_t below) { return counter_hash(round, drawn++) % below; };
    const int moments = 1 + static_cast<int>(draw(70));
    Occupancy taken(moments);
    std::vector<Block> placed;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(draw(static_cast<uint64_t>(moments)));
      const int last = first + static_cast<int>(draw(static_cast<uint64_t>(moments - first)));
      Block block{first, last, 1 + draw(9), 0};
      block.offset = taken.lowest_free(first, last, block.bytes);
      ASSERT_EQ(block.offset, lowest_by_trying(placed, block)) << "round " << round << ", block " << i;
      taken.take(first, last, block.offset, block.offset + block.bytes);
      placed.push_back(block);
    }
  }
}

// A training step of `depth` blocks: an activation saved in the forward pass lives until the backward pass
// reads it; beside it, every moment has a value that lives for that moment alone.
double steps_a_block(int depth) {
  const int moments = 2 * depth;
  Occupancy taken(moments);
  const auto place = [&](int first, int last, size_t bytes) {
    const size_t offset = taken.lowest_free(first, last, bytes);
    taken.take(first, last, offset, offset + bytes);
  };
  for (const size_t bytes : {512, 256})
    for (int i = 0; i < depth; ++i) place(i, moments - 1 - i, bytes);
  for (int i = 0; i < moments; ++i) place(i, std::min(i + 1, moments - 1), 128);
  for (int i = 0; i < moments; ++i) place(i, i, 64);
  return static_cast<double>(taken.steps()) / depth;
}

TEST(Occupancy, AQuestionCostsHardlyMoreOfADeepStepThanOfAShallowOne) {
  const double shallow = steps_a_block(64);
  EXPECT_LT(steps_a_block(4096), 4 * shallow) << "64 times the depth; the square would be 64 times the steps";
}

}  // namespace
}  // namespace vitrail
