// ZIP files that are damaged or lie about themselves.
#include "zip_files.h"

namespace vitrail {
namespace {

using namespace testing;

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
