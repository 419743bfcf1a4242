// Fuzzes torch files from before its zip archives: a sequence of pickles, then the storages.
#include "base/file.h"
#include "io/torch_file.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::expect_data_errors_only([&] {
    const auto source = open_torch_legacy(std::make_shared<MemoryBytes>("input", std::string(input)));
    fuzz::read_all(*source, input.size());
  });
  return 0;
}
