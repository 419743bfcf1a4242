// Checksums of files that end within a block, at its end and just behind it.
#include "io/checkpoint/manifest.h"

#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;

TEST(Manifest, FilesOfAnyLengthComeBackAndAreChecked) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, kChecksumBlock - 1, kChecksumBlock, kChecksumBlock + 1}) {
    SCOPED_TRACE(size);
    std::string content(static_cast<size_t>(size), 'x');
    if (size > 0) content.back() = 'y';
    const Manifest written{
        .step = 3, .facts = Json::object(), .files = {record_of(*in_memory(content), "f")}};
    const Manifest read = parse_manifest(manifest_text(written), "manifest.json");
    ASSERT_EQ(read.files.size(), 1u);
    FileRecord record = read.files[0];
    EXPECT_EQ(record.bytes, size);
    EXPECT_EQ(record.blocks.size(), (size + kChecksumBlock - 1) / kChecksumBlock);
    EXPECT_NO_THROW(require_intact(*in_memory(content), record));
    record.crc ^= 1;
    expect_refusal("does not match its checksum", [&] { require_intact(*in_memory(content), record); });
    if (size == 0) continue;
    content.back() = 'z';
    expect_refusal("is damaged", [&] { require_intact(*in_memory(content), read.files[0]); });
  }
}

}  // namespace
}  // namespace vitrail
