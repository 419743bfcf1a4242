#include "io/zip_directory.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/text.h"

namespace vitrail {

namespace {

using namespace zip_format;

constexpr size_t kMaxName = 1024;
constexpr uint64_t kMaxDirectoryBytes = uint64_t{64} << 20;
// Deflate compresses by at most 1032 to 1; an entry that announces more is forged.
constexpr uint64_t kMaxRatio = 1032;

// An entry as the directory states it, before its local header is read.
struct Listed {
  ZipEntry entry;
  uint16_t flags = 0, method = 0;
  uint64_t header_offset = 0;
};

struct Range {
  uint64_t offset = 0, bytes = 0, count = 0;
};

template <size_t N>
std::array<std::byte, N> bytes_at(const ByteSource& bytes, uint64_t offset) {
  std::array<std::byte, N> block;
  bytes.read_at(offset, block);
  return block;
}

// Finds the 64-bit record, when there is one right before the end record. Returns its position too.
std::optional<std::pair<Range, uint64_t>> find_range64(const ByteSource& bytes, uint64_t end) {
  if (end < kLocatorBytes + kEnd64Bytes) return std::nullopt;
  const auto locator_block = bytes_at<kLocatorBytes>(bytes, end - kLocatorBytes);
  ByteCursor locator(locator_block);
  if (locator.take<uint32_t>() != kLocator64) return std::nullopt;
  const auto disk = locator.take<uint32_t>();
  const auto position = locator.take<uint64_t>();
  const auto disks = locator.take<uint32_t>();
  VT_REQUIRE(disk == 0 && disks <= 1, ErrorKind::kData, "a zip split over %u disks", disks);
  VT_REQUIRE(position == end - kLocatorBytes - kEnd64Bytes, ErrorKind::kData,
             "the zip64 end record is not where its locator says");
  const auto record_block = bytes_at<kEnd64Bytes>(bytes, position);
  ByteCursor record(record_block);
  VT_REQUIRE(record.take<uint32_t>() == kEnd64, ErrorKind::kData, "the zip64 end record has no signature");
  VT_REQUIRE(record.take<uint64_t>() == kEnd64Bytes - 12, ErrorKind::kData,
             "a zip64 end record of unknown size");
  record.take(4);  // versions
  const auto this_disk = record.take<uint32_t>(), directory_disk = record.take<uint32_t>();
  const auto count_here = record.take<uint64_t>(), count = record.take<uint64_t>();
  VT_REQUIRE(this_disk == 0 && directory_disk == 0 && count_here == count, ErrorKind::kData,
             "a zip split over several disks");
  const auto size = record.take<uint64_t>(), offset = record.take<uint64_t>();
  return std::pair(Range{offset, size, count}, position);
}

Range find_directory(const ByteSource& bytes, const ZipLimits& limits) {
  VT_REQUIRE(bytes.size() >= kEndBytes, ErrorKind::kData, "%llu bytes are too few for a zip file",
             static_cast<unsigned long long>(bytes.size()));
  const uint64_t end = bytes.size() - kEndBytes;
  const auto block = bytes_at<kEndBytes>(bytes, end);
  ByteCursor record(block);
  VT_REQUIRE(record.take<uint32_t>() == kEnd, ErrorKind::kData,
             "no zip end record in the last %llu bytes (cut short, or something follows it)",
             static_cast<unsigned long long>(kEndBytes));
  const auto disk = record.take<uint16_t>(), directory_disk = record.take<uint16_t>();
  const auto count_here = record.take<uint16_t>(), count = record.take<uint16_t>();
  const auto size = record.take<uint32_t>(), offset = record.take<uint32_t>();
  VT_REQUIRE(disk == 0 && directory_disk == 0 && count_here == count, ErrorKind::kData,
             "a zip split over several disks");
  VT_REQUIRE(record.take<uint16_t>() == 0, ErrorKind::kData, "a zip comment, which weight files do not have");

  const auto found64 = find_range64(bytes, end);
  const Range range = found64 ? found64->first : Range{offset, size, count};
  const uint64_t directory_end = found64 ? found64->second : end;
  VT_REQUIRE((count == kSee64Count || count == range.count) && (size == kSee64 || size == range.bytes) &&
                 (offset == kSee64 || offset == range.offset),
             ErrorKind::kData, "the two end records of the zip disagree");
  VT_REQUIRE(range.count <= limits.max_entries, ErrorKind::kData, "%llu zip entries, at most %zu are read",
             static_cast<unsigned long long>(range.count), limits.max_entries);
  VT_REQUIRE(range.bytes <= kMaxDirectoryBytes && range.bytes <= directory_end &&
                 range.offset == directory_end - range.bytes,
             ErrorKind::kData, "the zip directory does not end where the end record begins");
  return range;
}

// Replaces the fields that say "see the 64-bit extra field" by its numbers, in the order given.
void apply_extra64(std::span<const std::byte> extra, std::span<uint64_t* const> fields) {
  ByteCursor cursor(extra);
  while (cursor.remaining() >= 4) {
    const auto id = cursor.take<uint16_t>();
    ByteCursor content(cursor.take(cursor.take<uint16_t>()));
    if (id != kExtra64) continue;
    for (uint64_t* field : fields)
      if (*field == kSee64) *field = content.take<uint64_t>();
    return;
  }
}

void require_usable(const Listed& listed) {
  const ZipEntry& entry = listed.entry;
  const std::string name = quoted(entry.name);
  constexpr uint16_t kKnownFlags = 0x0006 | kFlagDescriptor | kFlagUtf8;  // 0x0006: the deflate level
  VT_REQUIRE(!entry.name.empty() && entry.name.size() <= kMaxName && is_valid_utf8(entry.name) &&
                 entry.name.find('\0') == std::string::npos,
             ErrorKind::kData, "zip entry %s: the name must be 1 to %zu bytes of UTF-8", name.c_str(),
             kMaxName);
  VT_REQUIRE((listed.flags & ~kKnownFlags) == 0, ErrorKind::kData,
             "zip entry %s: flags 0x%04x (encrypted or patched entries are not read)", name.c_str(),
             listed.flags);
  VT_REQUIRE(listed.method == kStored || listed.method == kDeflated, ErrorKind::kData,
             "zip entry %s: compression method %u, only stored and deflated are read", name.c_str(),
             listed.method);
  VT_REQUIRE(entry.deflated || entry.packed_size == entry.size, ErrorKind::kData,
             "zip entry %s: stored, but its two sizes differ", name.c_str());
  VT_REQUIRE(!entry.deflated || entry.size / kMaxRatio <= entry.packed_size, ErrorKind::kData,
             "zip entry %s announces %llu bytes from %llu, more than deflate can pack", name.c_str(),
             static_cast<unsigned long long>(entry.size), static_cast<unsigned long long>(entry.packed_size));
}

Listed read_listed(ByteCursor& cursor) {
  VT_REQUIRE(cursor.take<uint32_t>() == kDirectoryEntry, ErrorKind::kData,
             "a zip directory entry has no signature");
  Listed listed;
  ZipEntry& entry = listed.entry;
  cursor.take(4);  // versions
  listed.flags = cursor.take<uint16_t>();
  listed.method = cursor.take<uint16_t>();
  entry.deflated = listed.method == kDeflated;
  cursor.take(4);  // time and date
  entry.crc = cursor.take<uint32_t>();
  entry.packed_size = cursor.take<uint32_t>();
  entry.size = cursor.take<uint32_t>();
  const auto name_bytes = cursor.take<uint16_t>(), extra_bytes = cursor.take<uint16_t>(),
             comment_bytes = cursor.take<uint16_t>();
  VT_REQUIRE(cursor.take<uint16_t>() == 0, ErrorKind::kData, "a zip split over several disks");
  cursor.take(6);  // attributes
  listed.header_offset = cursor.take<uint32_t>();
  entry.name = cursor.take_text(name_bytes);
  uint64_t* const fields[] = {&entry.size, &entry.packed_size, &listed.header_offset};
  apply_extra64(cursor.take(extra_bytes), fields);
  cursor.take(comment_bytes);
  require_usable(listed);
  return listed;
}

// Requires that the local header agrees with the directory, and reads the position of the data.
void check_local_header(const ByteSource& bytes, Listed& listed) {
  ZipEntry& entry = listed.entry;
  const auto block = bytes_at<kLocalBytes>(bytes, listed.header_offset);
  ByteCursor header(block);
  VT_REQUIRE(header.take<uint32_t>() == kLocalHeader, ErrorKind::kData,
             "no local header where the directory says");
  header.take(2);  // version
  const auto flags = header.take<uint16_t>(), method = header.take<uint16_t>();
  header.take(4);  // time and date
  const auto crc = header.take<uint32_t>();
  uint64_t packed_size = header.take<uint32_t>(), size = header.take<uint32_t>();
  const auto name_bytes = header.take<uint16_t>(), extra_bytes = header.take<uint16_t>();
  std::vector<std::byte> tail(size_t{name_bytes} + extra_bytes);
  bytes.read_at(listed.header_offset + kLocalBytes, tail);
  uint64_t* const fields[] = {&size, &packed_size};
  apply_extra64(std::span(tail).subspan(name_bytes), fields);

  // With a data descriptor the local header may leave these zero; what it does state must agree.
  const bool may_be_zero = (flags & kFlagDescriptor) != 0;
  const auto agrees = [&](uint64_t local, uint64_t truth) {
    return local == truth || (may_be_zero && local == 0);
  };
  VT_REQUIRE(as_text(std::span(tail).first(name_bytes)) == entry.name && flags == listed.flags &&
                 method == listed.method && agrees(crc, entry.crc) && agrees(size, entry.size) &&
                 agrees(packed_size, entry.packed_size),
             ErrorKind::kData, "local header and directory disagree");
  entry.data_offset = listed.header_offset + kLocalBytes + tail.size();
}

void require_apart(std::vector<Listed>& listed, uint64_t directory_offset) {
  std::vector<const Listed*> order;
  order.reserve(listed.size());
  for (const Listed& entry : listed) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Listed* a, const Listed* b) { return a->header_offset < b->header_offset; });
  for (size_t i = 0; i < order.size(); ++i) {
    const ZipEntry& entry = order[i]->entry;
    const uint64_t limit = i + 1 < order.size() ? order[i + 1]->header_offset : directory_offset;
    VT_REQUIRE(entry.data_offset <= limit && entry.packed_size <= limit - entry.data_offset, ErrorKind::kData,
               "zip entry %s overlaps what follows it", quoted(entry.name).c_str());
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ByteSource& bytes, const ZipLimits& limits) {
  const Range range = find_directory(bytes, limits);
  std::vector<std::byte> block(static_cast<size_t>(range.bytes));
  bytes.read_at(range.offset, block);
  ByteCursor cursor(block);
  std::vector<Listed> listed;
  uint64_t inflated = 0;
  for (uint64_t i = 0; i < range.count; ++i) {
    Listed entry = read_listed(cursor);
    with_context("zip entry " + quoted(entry.entry.name), [&] { check_local_header(bytes, entry); });
    if (entry.entry.deflated) {
      VT_REQUIRE(entry.entry.size <= limits.max_inflated_bytes - inflated, ErrorKind::kData,
                 "zip entry %s announces %llu bytes; all inflated entries together may have %llu",
                 quoted(entry.entry.name).c_str(), static_cast<unsigned long long>(entry.entry.size),
                 static_cast<unsigned long long>(limits.max_inflated_bytes));
      inflated += entry.entry.size;
    }
    listed.push_back(std::move(entry));
  }
  VT_REQUIRE(cursor.remaining() == 0, ErrorKind::kData, "%zu unexplained bytes in the zip directory",
             cursor.remaining());
  require_apart(listed, range.offset);
  std::vector<ZipEntry> entries;
  entries.reserve(listed.size());
  for (Listed& entry : listed) entries.push_back(std::move(entry.entry));
  return entries;
}

}  // namespace vitrail
