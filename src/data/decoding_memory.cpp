#include "data/decoding_memory.h"

#include <algorithm>

#include "base/error.h"
#include "data/codecs.h"
#include "data/decode.h"

namespace vitrail {

size_t decoding_bytes(std::span<const uint8_t> file, const DecodeLimits& limits) {
  try {
    return file.size() + static_cast<size_t>(codecs::working_bytes(file, limits));
  } catch (const Error&) {
    return 0;
  }
}

size_t largest_decoding(const Dataset& dataset) {
  if (dataset.pixel_shape()) return 0;
  constexpr int64_t kLooked = 32;
  const int64_t count = std::min(kLooked, dataset.size());
  size_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    try {
      const auto file = dataset.encoded(i * dataset.size() / count);
      if (file)
        largest =
            std::max(largest, decoding_bytes({reinterpret_cast<const uint8_t*>(file->data()), file->size()},
                                             DecodeLimits::for_datasets()));
    } catch (const Error&) {  // training on it reports the error
    }
  }
  return largest;
}

}  // namespace vitrail
