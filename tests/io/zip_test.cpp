#include "io/zip.h"

#include <zlib.h>

#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;

struct RawEntry {
  std::string name, data;  // data as it lies in the file
  uint64_t size = 0, packed = 0;
  uint32_t crc = 0;
  uint16_t flags = 0, method = 0;
};

uint32_t crc_of(const std::string& text) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

RawEntry stored(const std::string& name, const std::string& content) {
  return {name, content, content.size(), content.size(), crc_of(content)};
}

RawEntry deflated(const std::string& name, const std::string& content) {
  std::string packed(compressBound(content.size()), '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return {name, packed, content.size(), packed.size(), crc_of(content), 0, 8};
}

// Both headers of an entry share this run of fields; sizes always go to the 64-bit extra field.
std::string shared_fields(const RawEntry& entry) {
  std::string fields;
  for (const uint16_t value : {entry.flags, entry.method, uint16_t{0}, uint16_t{0x21}})
    append_le(fields, value);
  append_le(fields, entry.crc);
  for (int i = 0; i < 2; ++i) append_le(fields, 0xFFFFFFFFu);
  append_le(fields, static_cast<uint16_t>(entry.name.size()));
  append_le<uint16_t>(fields, 20);
  return fields;
}

std::string extra64(const RawEntry& entry) {
  std::string extra;
  for (const int value : {1, 16}) append_le(extra, static_cast<uint16_t>(value));
  append_le(extra, entry.size);
  append_le(extra, entry.packed);
  return extra;
}

std::string local_part(const RawEntry& entry) {
  return std::string("PK\3\4\x2d\0", 6) + shared_fields(entry) + entry.name + extra64(entry) + entry.data;
}

std::string directory_part(const RawEntry& entry, size_t offset) {
  std::string record = std::string("PK\1\2\x2d\0\x2d\0", 8) + shared_fields(entry) + std::string(10, '\0');
  append_le(record, static_cast<uint32_t>(offset));
  return record + entry.name + extra64(entry);
}

std::string end_part(size_t count, size_t bytes, size_t offset) {
  std::string end("PK\5\6\0\0\0\0", 8);
  for (int i = 0; i < 2; ++i) append_le(end, static_cast<uint16_t>(count));
  append_le(end, static_cast<uint32_t>(bytes));
  append_le(end, static_cast<uint32_t>(offset));
  return end + std::string(2, '\0');
}

std::string zip_of(const std::vector<RawEntry>& entries) {
  std::string file, directory;
  for (const RawEntry& entry : entries) {
    directory += directory_part(entry, file.size());
    file += local_part(entry);
  }
  return file + directory + end_part(entries.size(), directory.size(), file.size());
}

std::string content_of(const ZipReader& zip, size_t index) {
  std::string content(zip.entries()[index].size, '\0');
  zip.read(index, {}, std::as_writable_bytes(std::span(content)));
  return content;
}

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

std::string noise(size_t count) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < count) text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

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

TEST(Zip, DamagedAndLyingEntriesAreRefusedWhenRead) {
  RawEntry damaged = stored("a", "hello");
  damaged.data[0] = 'j';
  RawEntry bomb = deflated("a", std::string(1 << 20, '\0'));
  bomb.size = 1000;
  RawEntry shy = deflated("a", std::string(1000, 'x'));
  shy.size = 1001;
  RawEntry cut = deflated("a", std::string(1000, 'x') + "abcdefgh");
  cut.data.resize(cut.data.size() - 4);
  cut.packed = cut.data.size();
  RawEntry tail = deflated("a", "hello");
  tail.data += "junk";
  tail.packed = tail.data.size();
  RawEntry noise = stored("a", std::string(64, '\xff'));
  noise.method = 8;
  struct Case {
    RawEntry entry;
    const char* refusal;
  };
  for (const Case& c :
       {Case{damaged, "CRC"}, Case{bomb, "more than the 1000 bytes"}, Case{shy, "less than the 1001"},
        Case{cut, "damaged deflate"}, Case{tail, "inflates to"}, Case{noise, "damaged deflate"}}) {
    SCOPED_TRACE(c.refusal);
    const ZipReader zip(in_memory(zip_of({c.entry})));
    expect_refusal(c.refusal, [&] { content_of(zip, 0); });
  }
}

TEST(Zip, AnnouncedSizesAreCapped) {
  RawEntry forty_gigabytes = deflated("zeros", std::string(1000, '\0'));
  forty_gigabytes.size = uint64_t{40} << 30;
  expect_refusal("more than deflate can pack", [&] { ZipReader(in_memory(zip_of({forty_gigabytes}))); });
  RawEntry densest = deflated("zeros", std::string(1000, '\0'));
  densest.size = 1032 * densest.packed + 1031;
  EXPECT_NO_THROW(ZipReader(in_memory(zip_of({densest}))));
  densest.size += 1;
  expect_refusal("more than deflate can pack", [&] { ZipReader(in_memory(zip_of({densest}))); });
  forty_gigabytes.packed = uint64_t{40} << 20;
  expect_refusal("all inflated entries together", [&] { ZipReader(in_memory(zip_of({forty_gigabytes}))); });
  RawEntry huge = forty_gigabytes;
  huge.size = huge.packed = ~uint64_t{0};
  expect_refusal("all inflated entries together", [&] { ZipReader(in_memory(zip_of({huge}))); });
  std::vector<RawEntry> many;
  for (const char c : {'a', 'b', 'c'}) many.push_back(deflated(std::string(1, c), std::string(600, c)));
  EXPECT_NO_THROW(ZipReader(in_memory(zip_of(many)), {.max_inflated_bytes = 1800}));
  expect_refusal("all inflated entries together",
                 [&] { ZipReader(in_memory(zip_of(many)), {.max_inflated_bytes = 1799}); });
  expect_refusal("3 zip entries", [&] { ZipReader(in_memory(zip_of(many)), {.max_entries = 2}); });
}

TEST(Zip, EntriesMayNotOverlap) {
  const RawEntry inner = stored("inner", "payload");
  const RawEntry outer = stored("outer", local_part(inner));
  const std::string file = local_part(outer);
  const size_t inner_offset = file.size() - local_part(inner).size();
  const std::string directory = directory_part(outer, 0) + directory_part(inner, inner_offset);
  expect_refusal("overlaps", [&] {
    ZipReader(in_memory(file + directory + end_part(2, directory.size(), file.size())));
  });
  const std::string twice = directory_part(inner, 0) + directory_part(inner, 0);
  const std::string one = local_part(inner);
  expect_refusal("overlaps",
                 [&] { ZipReader(in_memory(one + twice + end_part(2, twice.size(), one.size()))); });
  RawEntry long_one = stored("a", "abc");
  long_one.size = long_one.packed = 1000;
  expect_refusal("overlaps", [&] { ZipReader(in_memory(zip_of({long_one}))); });
  expect_refusal("two zip entries", [&] { ZipReader(in_memory(zip_of({inner, inner}))); });
}

// A valid file with some bytes of one record changed.
TEST(Zip, EveryFieldIsChecked) {
  const std::string good = zip_of({stored("a", "hello")});
  const size_t end = good.size() - 22, directory = end - 46 - 1 - 20;
  struct Case {
    size_t at;
    std::string bytes;
    const char* refusal;
  };
  const Case cases[] = {
      {0, "PX", "no local header"},
      {6, "\x01", "disagree"},
      {8, "\x08", "disagree"},
      {14, "\x01\x01", "disagree"},
      {30, "b", "disagree"},
      {35, "\x06", "disagree"},
      {43, "\x06", "disagree"},
      {26, std::string("\xff\xff", 2), "cut short"},
      {directory, "PX", "no signature"},
      {directory + 8, "\x01", "flags"},
      {directory + 8, std::string("\x40\x20", 2), "flags"},
      {directory + 10, "\x0c", "method 12"},
      {directory + 28, std::string("\0\0", 2), "cut short"},
      {directory + 28, "\xff", "cut short"},
      {directory + 30, "\xff", "cut short"},
      {directory + 34, "\x01", "several disks"},
      {directory + 42, "\x01", "no local header"},
      {directory + 42, "\xff\xff\xff\x7f", "cut short"},
      {directory + 46, "\xff", "name must be"},
      {directory + 51, "\x06", "two sizes differ"},
      {end, "PX", "no zip end record"},
      {end + 4, "\x01", "several disks"},
      {end + 8, "\x02", "several disks"},
      {end + 8, std::string("\2\0\2\0", 4), "cut short"},
      {end + 8, std::string("\0\0\0\0", 4), "unexplained bytes"},
      {end + 12, "\x01", "does not end where"},
      {end + 16, "\x01", "does not end where"},
      {end + 20, "\x01", "comment"},
  };
  EXPECT_NO_THROW(ZipReader{in_memory(good)});
  for (const Case& c : cases) {
    SCOPED_TRACE(strf("byte %zu: %s", c.at, c.refusal));
    std::string bad = good;
    bad.replace(c.at, c.bytes.size(), c.bytes);
    expect_refusal(c.refusal, [&] { ZipReader{in_memory(bad)}; });
  }
  expect_refusal("no zip end record", [&] { ZipReader{in_memory(good + "tail")}; });
}

// What follows the data may state CRC and sizes instead of the header before it: zero there, but nothing
// else.
TEST(Zip, ADescriptorExcusesZerosAlone) {
  RawEntry entry = stored("a", "hello");
  entry.flags = 8;
  const std::string good = zip_of({entry});
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = good;
    return changed.replace(at, bytes.size(), bytes);
  };
  EXPECT_NO_THROW(ZipReader{in_memory(good)});
  EXPECT_NO_THROW(ZipReader{in_memory(with(14, std::string(4, '\0')))});
  expect_refusal("disagree", [&] { ZipReader{in_memory(with(14, "\x01\x01"))}; });
  expect_refusal("disagree", [&] { ZipReader{in_memory(with(35, "\x06"))}; });
}

TEST(Zip, Zip64RecordsMustAgree) {
  const TempFolder folder;
  {
    AtomicFile file(folder / "f");
    ZipWriter writer(file, 0);
    writer.add("a", {}, as_byte_span("hello"));
    writer.finish();
    file.commit();
  }
  const std::string good = slurp(folder / "f");
  const size_t end = good.size() - 22, locator = end - 20, record = locator - 56;
  EXPECT_NO_THROW(ZipReader{in_memory(good)});
  for (const size_t at : {record, record + 4, record + 16, record + 24, record + 32, record + 40, record + 48,
                          locator, locator + 4, locator + 8, locator + 16}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] + 2);
    EXPECT_THROW(ZipReader{in_memory(bad)}, Error) << at - record;
  }
}

}  // namespace
}  // namespace vitrail
