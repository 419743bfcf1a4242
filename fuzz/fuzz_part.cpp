// Fuzzes what a piece of a checkpoint says of a tensor: an accepted part must survive being written and read
// again, and its runs hold each of its elements once.
#include "base/json_text.h"
#include "io/checkpoint/part.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_data_errors_only([&] {
    const TensorPart part = part_from(parse_json(fuzz::text_of(data, size), "fuzz"));
    if (part_from(parse_json(json_text(to_json(part)), "again")) != part) std::abort();
    if (part.whole_elems() > 100'000) return;
    int64_t reached = 0, held = 0;
    for (const ElementRun& run : runs_of(part)) {
      if (run.from < reached || run.at != held || run.count <= 0) std::abort();
      reached = run.from + run.count;
      held += run.count;
    }
    if (reached > part.whole_elems() || held != part.count) std::abort();
  });
  return 0;
}
