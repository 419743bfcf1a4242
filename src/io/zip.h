// A narrow zip reader and writer: what numpy and torch write (stored and deflated entries, zip64), and
// nothing else. The whole directory is checked when opened; CRC and announced size are checked when an entry
// is read. Never extracts to disk, so entry names are only names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"

namespace vitrail {

struct ZipEntry {
  std::string name;
  uint64_t size = 0;         // after inflating
  uint64_t packed_size = 0;  // in the file; equal to size when stored
  uint64_t data_offset = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

struct ZipLimits {
  uint64_t max_inflated_bytes = uint64_t{16} << 30;  // announced by all deflated entries together
  size_t max_entries = 100'000;
};

// One entry read front to back in pieces. Its CRC and size are checked when the last byte is read. It refers
// to the reader that opened it.
class ZipStream {
 public:
  ZipStream(const ByteSource& bytes, const ZipEntry& entry);
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;
  ~ZipStream();

  uint64_t position() const { return position_; }
  void read(std::span<std::byte> target);
  void skip(uint64_t count);

 private:
  friend class ZipReader;
  class Inflater;
  void check_end();

  const ByteSource& bytes_;
  const ZipEntry& entry_;
  std::unique_ptr<Inflater> inflater_;  // none for a stored entry
  uint64_t position_ = 0;
  uint32_t crc_ = 0;
};

class ZipReader {
 public:
  explicit ZipReader(std::shared_ptr<const ByteSource> bytes, const ZipLimits& limits = {});
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader() = default;

  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::optional<size_t> find(std::string_view name) const;

  // Reads the first min(size, target.size()) bytes of an entry, without the CRC check; returns how many.
  size_t peek(size_t index, std::span<std::byte> target) const;

  // Reads a whole entry, its first head.size() bytes apart from the rest; together they have the entry's
  // size.
  void read(size_t index, std::span<std::byte> head, std::span<std::byte> body) const;

  // Reads bytes of a stored entry from `offset` on, without the CRC check, which needs the whole entry.
  void read_stored(size_t index, uint64_t offset, std::span<std::byte> target) const;

  std::unique_ptr<ZipStream> stream(size_t index) const;

 private:
  std::shared_ptr<const ByteSource> bytes_;
  std::vector<ZipEntry> entries_;  // in directory order
  std::unordered_map<std::string_view, size_t> by_name_;
};

// Writes stored entries one after the other into a file the caller commits.
class ZipWriter {
 public:
  // Numbers from `zip64_from` on go to 64-bit fields; tests lower it to test them without 4 GiB.
  explicit ZipWriter(AtomicFile& file, uint64_t zip64_from = 0xFFFFFFFF)
      : file_(file), zip64_from_(zip64_from) {}

  void add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body);
  void finish();

 private:
  struct Written {
    std::string name;
    uint64_t size, offset;
    uint32_t crc;
  };
  std::string directory_record(const Written& entry) const;

  AtomicFile& file_;
  uint64_t zip64_from_;
  std::vector<Written> written_;
};

}  // namespace vitrail
