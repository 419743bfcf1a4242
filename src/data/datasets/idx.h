// One file of MNIST's format: big-endian extents, then bytes; gzipped or not.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file.h"

namespace vitrail {

struct IdxFile {
  std::unique_ptr<ByteSource> bytes;
  std::vector<int64_t> extents;
  uint64_t header = 0;  // where the values start
};

// Opens a file of `dims` extents and exactly as many bytes. A gzipped one is unpacked into memory, if there
// is enough of it.
IdxFile open_idx_bytes(std::unique_ptr<ByteSource> bytes, bool zipped, size_t dims);

}  // namespace vitrail
