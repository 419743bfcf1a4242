// What every transport asks of a collective before it starts: the right number of counts, a peer that exists,
// a type that can be summed. Knows no transport.
#pragma once

#include <string>

#include "dist/communicator.h"

namespace vitrail {

// Throws Error(kInternal) for a collective that no group of `size` ranks can run.
void check_collective(const Collective& collective, int rank, int size);

// Returns "all-gather of f32 [3 4]".
std::string to_string(const Collective& collective);

// Returns why two ranks of a group cannot have meant the same collective; empty when they may have.
std::string disagreement(const Collective& mine, int my_rank, const Collective& other, int other_rank,
                         int size);

}  // namespace vitrail
