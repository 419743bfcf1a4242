// Fuzzes zip archives as npz or torch files, and bare npy headers.
#include "base/bytes.h"
#include "io/npy.h"
#include "io/torch_file.h"
#include "tensor_target.h"

using namespace vitrail;

namespace {
constexpr uint64_t kMaxInflated = 1 << 20;

void open_archive(std::string_view input) {
  const ZipLimits limits{.max_inflated_bytes = kMaxInflated, .max_entries = 1000};
  auto zip = std::make_unique<ZipReader>(std::make_shared<MemoryBytes>("input", std::string(input)), limits);
  const auto source =
      looks_like_torch(*zip) ? open_torch(std::move(zip), "input") : open_npz(std::move(zip), "input");
  fuzz::read_all(*source, std::max<size_t>(input.size(), kMaxInflated));
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::expect_data_errors_only([&] {
    if (input.starts_with('\x93'))
      parse_npy_header(as_byte_span(input));
    else
      open_archive(input);
  });
  return 0;
}
