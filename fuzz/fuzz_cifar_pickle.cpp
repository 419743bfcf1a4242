// Fuzzes a python batch of CIFAR and its list of names, read as data.
#include "base/bytes.h"
#include "data/datasets/file_formats.h"
#include "dataset_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* key : {"labels", "fine_labels"})
    fuzz::refuse_as_data_only(data, size, [&](std::string_view text) {
      const CifarBatch batch = read_cifar_pickle(as_byte_span(text), key, 100);
      if (batch.pixels.size() != batch.labels.size() * kCifarPixels) std::abort();
    });
  fuzz::refuse_as_data_only(
      data, size, [](std::string_view text) { read_cifar_names(as_byte_span(text), "label_names"); });
  return 0;
}
