// Holds what transports share: the checks of a collective before it starts, and the sum over ranks, always
// made in the order of the ranks, so that the same inputs give the same bits whatever carries them. Knows no
// transport.
#pragma once

#include <span>
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

// Returns whether sums are made of this type: f64, f32, f16, bf16, i64, i32.
bool can_sum(DType dtype);

// Writes ins[0] + ins[1] + ... to every one of `outs`, for `count` elements. 16-bit types are summed in f32
// and rounded once. An output may be one of the inputs; they do not overlap otherwise.
void sum_ranges(DType dtype, std::span<const void* const> ins, std::span<void* const> outs, size_t count);

// Returns where piece r of `count` elements begins when `size` ranks share them, at a multiple of 64 bytes.
size_t cut_of(size_t count, int r, int size, DType dtype);

}  // namespace vitrail
