// Counter-based random numbers: a value is a function of (key, index), so any order and any number of threads
// give the same. Holds no state; must not know what the numbers are for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vitrail {

// Hashes a name to a key: FNV-1a, 64 bits.
constexpr uint64_t name_key(std::string_view name) {
  uint64_t key = 0xCBF29CE484222325u;
  for (char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return key;
}

// Returns the value at position `index` of the SplitMix64 stream that starts at `key`.
constexpr uint64_t counter_hash(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Returns a uniform number in [-1, 1), a multiple of 2^-23: 24 random bits, exact in f32.
constexpr float counter_uniform(uint64_t key, uint64_t index) {
  return static_cast<float>(counter_hash(key, index) >> 40) * 0x1p-23f - 1.0f;
}

// Returns uniform number `index` of a stream, inside (0, 1): 53 random bits.
double uniform01(uint64_t key, uint64_t index);

// Fills `values` with unit normals number `first` and after, by Box and Muller. Only additions, products,
// quotients and roots are used, each rounded as IEEE says, so every processor draws the same bits.
void draw_normals(uint64_t key, uint64_t first, std::span<double> values);

// The same for a unit normal cut at +-2: what lies outside is drawn again.
void draw_cut_normals(uint64_t key, uint64_t first, std::span<double> values);

}  // namespace vitrail
