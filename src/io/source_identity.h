// What a model's weight files are, in a few lines of text: when it is the same, so are the weights. Used to
// know whether what was once made from them still holds.
#pragma once

#include <string>

#include "io/tensor_source.h"

namespace vitrail {

// For every file (shards and adapters kept beside them too) its name, size, time of change to the nanosecond,
// and checksums of its head, its tail and blocks spread over it. Size and time tell of every usual change;
// the blocks tell when another file was put there with size and time kept, as copying tools do: two trainings
// of one architecture differ in every block. A full checksum would read the whole file, which is what a cache
// is there to save.
std::string source_identity(const TensorSource& source);

}  // namespace vitrail
