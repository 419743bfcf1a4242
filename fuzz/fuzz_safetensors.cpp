// Fuzzes a whole file, or, when the input begins with a brace, its header and data: the length is then added
// here, so that mutations of the JSON are not rejected for a wrong length.
#include "base/bytes.h"
#include "io/safetensors.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  std::string file;
  if (input.starts_with('{')) append_le<uint64_t>(file, input.rfind('}') + 1);
  file += input;
  fuzz::expect_data_errors_only([&] {
    const auto source = open_safetensors(std::make_shared<MemoryBytes>("input", file));
    fuzz::read_all(*source, size);
  });
  return 0;
}
