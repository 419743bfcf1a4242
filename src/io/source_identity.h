// The identities of a model's weight files, in a few lines of text: while one is the same, so are the
// weights, and what was made from them still holds.
#pragma once

#include <string>

#include "io/tensor_source.h"

namespace vitrail {

// Returns, for every file (shards and separate adapters too), its name, size, modification time to the
// nanosecond, and checksums of its head, its tail and blocks spread over it. Size and time reveal every usual
// change; the blocks reveal another file put there with the same size and time, as copying tools do: two
// trainings of one architecture differ in every block. A full checksum would read the whole file, which is
// what a cache avoids.
std::string source_identity(const TensorSource& source);

// Returns, for every file, its size and a checksum of all of it: what the weights are, wherever they lie and
// whatever their files are called. Reads files whole that no manifest has the checksum of.
std::string content_identity(const TensorSource& source);

}  // namespace vitrail
