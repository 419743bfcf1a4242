// Normal random numbers by Box and Muller over the counter-based uniforms of rng.h. Only additions, products,
// quotients and roots are used, each rounded as IEEE says, so every processor draws the same bits.
#pragma once

#include <cstdint>
#include <span>

namespace vitrail {

// Returns uniform number `index` of a stream, inside (0, 1): 53 random bits.
double uniform01(uint64_t key, uint64_t index);

// Fills `values` with unit normals number `first` and after.
void draw_normals(uint64_t key, uint64_t first, std::span<double> values);

// The same for a unit normal cut at +-2: what lies outside is drawn again.
void draw_cut_normals(uint64_t key, uint64_t first, std::span<double> values);

}  // namespace vitrail
