// Which pins a mesh brings: those of each of its axes, whatever the others are.
#include "passes/pins.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vitrail {
namespace {

int pins_on(const Distribution& how, int zero, Axis axis) {
  const std::vector<Pin> pins = pins_of(how, zero);
  return static_cast<int>(
      std::count_if(pins.begin(), pins.end(), [&](const Pin& pin) { return pin.axis == axis; }));
}

TEST(Pins, EachAxisBringsItsOwnWhateverTheOthersAre) {
  const auto alone = [](Axis axis) {
    Distribution how;
    how.mesh.sizes[static_cast<size_t>(axis)] = 2;
    return how;
  };
  for (Axis axis : {Axis::kData, Axis::kTensor, Axis::kSequence}) {
    const int wanted = pins_on(alone(axis), 0, axis);
    EXPECT_GT(wanted, 0);
    EXPECT_EQ(static_cast<int>(pins_of(alone(axis), 0).size()), wanted);
    for (Axis other : {Axis::kData, Axis::kTensor, Axis::kSequence}) {
      Distribution both = alone(axis);
      both.mesh.sizes[static_cast<size_t>(other)] = 2;
      EXPECT_EQ(pins_on(both, 0, axis), wanted) << to_string(both.mesh);
    }
  }
  EXPECT_TRUE(pins_of({}, 3).empty());
}

TEST(Pins, ZeroAddsAPinAStageAndTokensOnTpOne) {
  Distribution how;
  how.mesh.sizes[static_cast<size_t>(Axis::kData)] = 2;
  const int none = pins_on(how, 0, Axis::kData);
  for (int zero : {1, 2, 3}) EXPECT_EQ(pins_on(how, zero, Axis::kData), none + zero);
  how.mesh.sizes[static_cast<size_t>(Axis::kTensor)] = 2;
  const int tensor = pins_on(how, 0, Axis::kTensor);
  how.tokens_on_tp = true;
  EXPECT_EQ(pins_on(how, 0, Axis::kTensor), tensor + 1);
}

}  // namespace
}  // namespace vitrail
