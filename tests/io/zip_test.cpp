// ZIP files read whole and as streams, and written.
#include "io/zip.h"

#include "zip_files.h"

namespace vitrail {
namespace {

using namespace testing;

TEST(Zip, ReadsStoredAndDeflated) {
  const std::string text = std::string(100000, 'a') + "end";
  const ZipReader zip(
      in_memory(zip_of({stored("s", "hello"), deflated("d", text), stored("e", ""), deflated("f", "")})));
  ASSERT_EQ(zip.entries().size(), 4u);
  EXPECT_EQ(content_of(zip, 0), "hello");
  EXPECT_EQ(content_of(zip, 1), text);
  EXPECT_EQ(content_of(zip, 2), "");
  EXPECT_EQ(content_of(zip, 3), "");
  EXPECT_EQ(zip.find("d"), 1u);
  EXPECT_FALSE(zip.find("x"));
  std::string start(10, '\0');
  for (const size_t index : {size_t{0}, size_t{1}}) {
    const size_t count = zip.peek(index, std::as_writable_bytes(std::span(start)));
    EXPECT_EQ(start.substr(0, count), index == 0 ? "hello" : "aaaaaaaaaa");
  }
}

// A source that counts what is read.
class CountedBytes : public ByteSource {
 public:
  explicit CountedBytes(std::string content) : content_(std::move(content)) {
    name_ = "counted";
    size_ = content_.size();
  }
  void reset() { total_ = largest_ = 0; }
  uint64_t total() const { return total_; }
  uint64_t largest() const { return largest_; }

 private:
  void read_checked(uint64_t offset, std::span<std::byte> target) const override {
    std::memcpy(target.data(), content_.data() + offset, target.size());
    total_ += target.size();
    largest_ = std::max<uint64_t>(largest_, target.size());
  }
  std::string content_;
  mutable uint64_t total_ = 0, largest_ = 0;
};

TEST(Zip, StreamsReadEachByteOnce) {
  const std::string content = noise(700'000);
  for (const RawEntry& entry : {stored("e", content), deflated("e", content)}) {
    const auto bytes = std::make_shared<CountedBytes>(zip_of({entry}));
    const ZipReader zip(bytes);
    bytes->reset();
    const auto stream = zip.stream(0);
    std::string piece(1000, '\0');
    for (size_t at = 0; at < content.size(); at += 7000) {
      stream->skip(at - stream->position());
      stream->read(std::as_writable_bytes(std::span(piece)));
      EXPECT_EQ(piece, content.substr(at, 1000)) << at;
    }
    stream->skip(content.size() - stream->position());
    EXPECT_EQ(bytes->total(), entry.packed);
    EXPECT_LE(bytes->largest(), 64u << 10);
  }
}

TEST(Zip, StreamsCheckTheEndAsReadersDo) {
  const auto stream_all = [](const RawEntry& entry) {
    const ZipReader zip(in_memory(zip_of({entry})));
    const auto stream = zip.stream(0);
    for (uint64_t left = entry.size; left > 0; --left) stream->skip(1);
  };
  RawEntry damaged = stored("e", "hello"), longer = deflated("e", "hello"), shorter = longer;
  damaged.data[4] = 'x';
  longer.size = 4;
  shorter.size = 6;
  EXPECT_NO_THROW(stream_all(deflated("e", "hello")));
  expect_refusal("memory: zip entry \"e\": CRC is ", [&] { stream_all(damaged); });
  expect_refusal("to more than the 4", [&] { stream_all(longer); });
  expect_refusal("to less than the 6", [&] { stream_all(shorter); });
}

TEST(Zip, WriterRoundTripIn32And64Bits) {
  const TempFolder folder;
  for (const uint64_t zip64_from : {uint64_t{0xFFFFFFFF}, uint64_t{40}, uint64_t{0}}) {
    AtomicFile file(folder / "f.zip");
    ZipWriter writer(file, zip64_from);
    writer.add("one", as_byte_span("head"), as_byte_span("body"));
    writer.add("two", {}, {});
    writer.add("é", as_byte_span(std::string(50, 'z')), {});
    writer.finish();
    file.commit();
    const ZipReader zip(std::make_shared<RandomAccessFile>(folder / "f.zip"));
    ASSERT_EQ(zip.entries().size(), 3u);
    EXPECT_EQ(content_of(zip, 0), "headbody");
    EXPECT_EQ(content_of(zip, 1), "");
    EXPECT_EQ(content_of(zip, *zip.find("é")), std::string(50, 'z'));
  }
}

TEST(Zip, EmptyArchive) {
  EXPECT_TRUE(ZipReader(in_memory(zip_of({}))).entries().empty());
}

}  // namespace
}  // namespace vitrail
