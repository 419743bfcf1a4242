// What the two halves of the reader of preprocessor_config.json share: hf_processor.cpp, which knows colours,
// and hf_geometry.cpp with hf_ways.cpp, which know sizes. Private to them.
#pragma once

#include "io/cards/hf_processor.h"
#include "io/cards/hf_processor_rows.h"

namespace vitrail::hf_rows {

inline constexpr const char* kImages = "preprocessor_config.json";

inline bool has(const Row& row, unsigned trait) {
  return (row.traits & trait) != 0;
}

// Reads a truth value as Python does: null is false where a key left out is not, and some configs hold 1 for
// true.
bool flag(const Json& images, const char* key, bool otherwise);

// Throws Error(kData) that names the processor, and the key by which it does what is not read.
[[noreturn]] void refuse_beyond(const Row& row, const Json& images, const char* key);

// Reads a size, and a whole number of at least `least`; Error(kData) when they are out of range.
HfSide side_of(const Json& images, const char* key, int64_t usual);
int64_t number_of(const Json& images, const char* key, int64_t usual, int64_t least);

// Reads resize, crop and padding into `p`, which comes with the model's own size as its crop and with its
// colours.
void read_geometry(const Json& images, const Row& row, StatedConfig* stated, PreprocessConfig* p);

// The geometry of rows whose ways are their own (hf_ways.cpp).
void read_divided(const Json& images, const Row& row, StatedConfig* stated, PreprocessConfig* p);
void read_centre(const Json& images, const Row& row, PreprocessConfig* p);
void read_square(const Json& images, const Row& row, PreprocessConfig* p);
void read_corner(const Json& images, const Row& row, PreprocessConfig* p);
void read_thumbnail(const Json& images, const Row& row, PreprocessConfig* p);

// Lets images be stretched to a size, whatever their shape.
void stretch_to(const HfSide& side, PreprocessConfig* p);
// Takes back the resize where the config says that there is none.
void settle_resize(const Json& images, bool crops, StatedConfig* stated, PreprocessConfig* p);

}  // namespace vitrail::hf_rows
