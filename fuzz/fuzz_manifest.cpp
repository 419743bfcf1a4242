// Fuzzes a checkpoint's manifest. The input is the text without its checksum, which is added here so that the
// code behind the check is reached; an accepted manifest must survive being written and read again.
#include "base/crc32c.h"
#include "io/checkpoint/manifest.h"
#include "tensor_target.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(fuzz::text_of(data, size));
  const uint32_t crc = crc32c(std::as_bytes(std::span(body)));
  fuzz::expect_data_errors_only([&] { parse_manifest(body, "unsealed"); });
  fuzz::expect_data_errors_only([&] {
    const Manifest read =
        parse_manifest(body + strf(",\n \"manifest_crc32c\": \"%08x\"\n}\n", crc), "sealed");
    const Manifest again = parse_manifest(manifest_text(read), "again");
    if (again.step != read.step || again.facts != read.facts || again.files != read.files) std::abort();
  });
  return 0;
}
