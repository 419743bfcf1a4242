#include "io/cache_file.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/file.h"

namespace vitrail {

namespace {

// The layout, little-endian: magic, header bytes (8), content bytes (8), checksum of the header with these
// four bytes as zeros (4), identity bytes (4), identity, a checksum of every piece (4 each), zeros up to a
// page; then the content.
constexpr std::string_view kMagic = "VTCACHE1";
constexpr size_t kFixedBytes = 32, kChecksumAt = 24;
constexpr uint64_t kPage = 4096;
constexpr size_t kPiece = 1 << 20;  // read and checked while it is in the CPU's cache

size_t piece_count(size_t bytes) {
  return ceil_div(bytes, kPiece);
}

template <typename Bytes>
Bytes piece_of(Bytes bytes, size_t piece) {
  return bytes.subspan(piece * kPiece, std::min(kPiece, bytes.size() - piece * kPiece));
}

uint32_t header_checksum(std::string header) {
  header.replace(kChecksumAt, 4, 4, '\0');
  return crc32c(as_byte_span(header));
}

std::string make_header(std::string_view identity, size_t content_bytes,
                        const std::vector<uint32_t>& checksums) {
  const size_t used = kFixedBytes + identity.size() + 4 * checksums.size();
  std::string header(kMagic);
  append_le<uint64_t>(header, round_up(used, kPage));
  append_le<uint64_t>(header, content_bytes);
  append_le<uint32_t>(header, 0);
  append_le<uint32_t>(header, static_cast<uint32_t>(identity.size()));
  header += identity;
  for (const uint32_t checksum : checksums) append_le(header, checksum);
  header.resize(round_up(used, kPage), '\0');
  std::string sum;
  append_le(sum, header_checksum(header));
  return header.replace(kChecksumAt, 4, sum);
}

// Requires the expected header, byte for byte, except the pieces' checksums, which it returns.
std::string read_header(const ByteSource& file, std::string_view identity, size_t content_bytes,
                        std::vector<uint32_t>& checksums) {
  const size_t expected = round_up(kFixedBytes + identity.size() + 4 * piece_count(content_bytes), kPage);
  if (file.size() != expected + content_bytes) return "it has another size";
  std::string header(expected, '\0');
  file.read_at(0, std::as_writable_bytes(std::span(header)));
  const std::string_view found = std::string_view(header).substr(kFixedBytes, identity.size());
  if (!header.starts_with(kMagic)) return "it is of another version";
  if (found != identity) return "it was made from something else";
  ByteCursor cursor(as_byte_span(header));
  cursor.take(kFixedBytes + identity.size());
  for (uint32_t& checksum : checksums) checksum = cursor.take<uint32_t>();
  return header == make_header(identity, content_bytes, checksums) ? "" : "it is damaged";
}

std::string read_all(const ByteSource& file, std::string_view identity, std::span<std::byte> target,
                     ThreadPool& pool) {
  std::vector<uint32_t> checksums(piece_count(target.size()));
  if (std::string why = read_header(file, identity, target.size(), checksums); !why.empty()) return why;
  const size_t start = file.size() - target.size();
  std::atomic<bool> whole = true;
  pool.run(std::ssize(checksums), [&](int64_t task, int) {
    const auto i = static_cast<size_t>(task);
    const std::span<std::byte> piece = piece_of(target, i);
    file.read_at(start + i * kPiece, piece);
    if (crc32c(piece) != checksums[i]) whole = false;
  });
  return whole ? "" : "it is damaged";
}

}  // namespace

std::string read_cache_file(const std::string& path, std::string_view identity, std::span<std::byte> target,
                            ThreadPool& pool) {
  try {
    return read_all(RandomAccessFile(path), identity, target, pool);
  } catch (const Error& error) {
    return error.what();
  }
}

void write_cache_file(const std::string& path, std::string_view identity, std::span<const std::byte> content,
                      ThreadPool& pool) {
  std::vector<uint32_t> checksums(piece_count(content.size()));
  pool.run(std::ssize(checksums), [&](int64_t task, int) {
    checksums[static_cast<size_t>(task)] = crc32c(piece_of(content, static_cast<size_t>(task)));
  });
  AtomicFile file(path);
  file.write(make_header(identity, content.size(), checksums));
  file.write(content);
  file.commit();
}

}  // namespace vitrail
