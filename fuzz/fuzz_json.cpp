// Fuzzes strict JSON: accepted text must print and parse again to the same value.
#include "base/json.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const JsonLimits limits{.max_bytes = 1 << 16, .max_depth = 16, .comments = size % 2 == 1};
  fuzz::expect_data_errors_only([&] {
    const Json value = parse_json(fuzz::text_of(data, size), "input", limits);
    if (parse_json(value.dump(), "again", {}) != value) std::abort();
  });
  return 0;
}
