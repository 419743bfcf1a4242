// Reads the orientation from EXIF, which is a TIFF file within an image.
#include <cstring>

#include "data/codecs.h"

namespace vitrail::codecs {
namespace {

class TiffReader {
 public:
  explicit TiffReader(Bytes bytes) : bytes_(bytes), big_endian_(bytes.size() > 1 && bytes[0] == 'M') {}

  bool has(uint64_t at, uint64_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }

  uint32_t number(uint64_t at, int length) const {
    if (!has(at, static_cast<uint64_t>(length))) return 0;
    uint32_t value = 0;
    for (int i = 0; i < length; ++i)
      value = value << 8 | bytes_[at + static_cast<uint64_t>(big_endian_ ? i : length - 1 - i)];
    return value;
  }

 private:
  Bytes bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(Bytes tiff) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kEntryBytes = 12;
  if (tiff.size() < 8 || (std::memcmp(tiff.data(), "II*\0", 4) && std::memcmp(tiff.data(), "MM\0*", 4)))
    return 0;
  const TiffReader reader(tiff);
  const uint64_t directory = reader.number(4, 4);
  const uint32_t entries = reader.number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{i} * kEntryBytes;
    if (!reader.has(entry, kEntryBytes)) break;
    if (reader.number(entry, 2) != kOrientation || reader.number(entry + 2, 2) != kShort) continue;
    const uint32_t value = reader.number(entry + 8, 2);
    return value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

}  // namespace vitrail::codecs
