// Fuzzes the pickle machine with every name allowed, then the reading of a torch state dict.
#include "base/bytes.h"
#include "io/torch_file.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = as_byte_span(fuzz::text_of(data, size));
  fuzz::expect_data_errors_only([&] {
    read_pickle(input, [](std::string_view) { return true; }, {.max_nodes = 10'000, .max_items = 100'000});
  });
  fuzz::expect_data_errors_only([&] { read_torch_pickle(input); });
  return 0;
}
