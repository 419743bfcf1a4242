// Fuzzes the other dataset files; the first byte selects which. Packed sets keep their checksum, labels are
// CSV, JSON or a .cls file, shard names hold braces.
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/packed.h"
#include "data/datasets/tar_samples.h"
#include "dataset_target.h"

using namespace vitrail;

namespace {

// Returns a packed set with the checksum of its table corrected, as far as the footer allows.
std::string mended(std::string_view text) {
  constexpr size_t kFooter = 32;
  std::string bytes(text);
  if (bytes.size() < kFooter) return bytes;
  ByteCursor foot(as_byte_span(bytes).last(kFooter));
  const auto offset = foot.take<uint64_t>(), length = foot.take<uint64_t>();
  if (offset > bytes.size() || length > bytes.size() - offset) return bytes;
  std::string crc;
  append_le(crc, crc32c(as_byte_span(bytes).subspan(offset, length)));
  return bytes.replace(bytes.size() - kFooter + 16, crc.size(), crc);
}

void read_packed(std::string_view text) {
  const auto data = open_packed_bytes(std::make_unique<MemoryBytes>("fuzz", mended(text)), Part::kAll);
  for (int64_t i = 0; i < data->size(); ++i) {
    for (const int32_t label : data->labels(i))
      if (static_cast<size_t>(label) >= data->classes().size()) std::abort();
    try {
      data->encoded(i);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz::refuse_as_data_only(data + 1, size - 1, [&](std::string_view text) {
    switch (data[0]) {
      case 'c':
        parse_labels(text);
        return;
      case 'j':
        parse_json_label(std::string(text));
        return;
      case 'l':
        parse_cls(std::string(text));
        return;
      default:
        read_packed(text);
    }
  });
  return 0;
}
