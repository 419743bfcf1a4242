#include <zlib.h>

#include "image_target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

uint32_t big_endian_32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// Without correct checksums libpng would stop at the first mutated chunk.
void repair_checksums(uint8_t* data, size_t size) {
  constexpr size_t kSignature = 8, kFrame = 12;  // length, kind, checksum
  for (size_t at = kSignature; at + kFrame <= size;) {
    const size_t length = big_endian_32(data + at);
    if (length > size - at - kFrame) return;
    const auto sum = static_cast<uint32_t>(crc32(0, data + at + 4, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) data[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kFrame + length;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const size_t mutated = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8) repair_checksums(data, mutated);
  return mutated;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vitrail::fuzz::decode_and_preprocess({data, size});
  return 0;
}
