// Fuzzes WebDataset shards: headers, extensions, labels, and the places of images. The mutator keeps most
// header checksums correct, so that the code behind the check is reached.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "data/datasets/tar_samples.h"
#include "dataset_target.h"

using namespace vitrail;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_as_data_only(data, size, [](std::string_view text) {
    const MemoryBytes file("fuzz.tar", std::string(text));
    for (const TarSample& sample : index_tar(file))
      if (sample.offset > text.size() || sample.size > text.size() - sample.offset || sample.name.empty())
        std::abort();
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr size_t kBlock = 512, kSum = 148, kSumBytes = 8, kMagic = 257;
  for (size_t at = 0; seed % 8 != 0 && at + kBlock <= size; at += kBlock) {
    uint8_t* header = data + at;
    if (std::memcmp(header + kMagic, "ustar", 5) != 0) continue;
    std::fill_n(header + kSum, kSumBytes, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += header[i];
    std::snprintf(reinterpret_cast<char*>(header + kSum), kSumBytes - 1, "%06o", sum);
  }
  return size;
}
