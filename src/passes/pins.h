// Pins: what a strategy fixes before layouts follow the dims rules of the ops. A strategy is a short table of
// them, the tables of a mesh's strategies one after another are all that distribute is told.
#pragma once

#include <string>
#include <vector>

#include "passes/distribute.h"

namespace vitrail {

// Says what a pin holds in place.
enum class PinOn : uint8_t {
  kValues,      // inputs and kept values
  kInputs,      // inputs alone
  kParameters,  // parameters and what is kept beside them: gradient sums, optimizer state, averages
  kStream,      // the residual stream [B N D] inside the blocks
  kAttention,   // attention, whose dims the stream's pin leaves whole
  kOwned,       // flat groups of which each rank owns a piece (ZeRO); passes/flat_groups.h cuts them
};

struct Pin {
  Axis axis;
  PinOn on;
  Placed placed;     // a shard of a dim; of kFlat: a range of elements
  const char* what;  // in words, for who reads the program
};

// The pins of a mesh, in the order in which they are asked; axes of one rank have none.
std::vector<Pin> pins_of(const Distribution& how, int zero = 0);
// One line a pin: "tp parameters S(H): heads of qkv and proj".
std::string to_string(const std::vector<Pin>& pins);

}  // namespace vitrail
