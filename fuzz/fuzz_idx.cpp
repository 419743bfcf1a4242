// Fuzzes files of MNIST's format; the first byte selects labels or images, gzipped or not.
#include "data/datasets/file_formats.h"
#include "dataset_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_as_data_only(data, size, [](std::string_view text) {
    if (text.empty()) return;
    const bool images = (text[0] & 1) != 0, zipped = (text[0] & 2) != 0;
    auto bytes = std::make_unique<MemoryBytes>("fuzz", std::string(text.substr(1)));
    const IdxFile file = open_idx_bytes(std::move(bytes), zipped, images ? 3 : 1);
    uint64_t values = 1;
    for (const int64_t extent : file.extents) values *= static_cast<uint64_t>(extent);
    if (file.bytes->size() != file.header + values) std::abort();
  });
  return 0;
}
