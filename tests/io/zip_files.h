// ZIP files written by hand, so that any field of them may lie.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <span>
#include <string>
#include <vector>

#include "io/zip.h"
#include "samples.h"

namespace vitrail::testing {

struct RawEntry {
  std::string name, data;  // data as it lies in the file
  uint64_t size = 0, packed = 0;
  uint32_t crc = 0;
  uint16_t flags = 0, method = 0;
};

inline uint32_t crc_of(const std::string& text) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

inline RawEntry stored(const std::string& name, const std::string& content) {
  return {name, content, content.size(), content.size(), crc_of(content)};
}

inline RawEntry deflated(const std::string& name, const std::string& content) {
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
inline std::string shared_fields(const RawEntry& entry) {
  std::string fields;
  for (const uint16_t value : {entry.flags, entry.method, uint16_t{0}, uint16_t{0x21}})
    append_le(fields, value);
  append_le(fields, entry.crc);
  for (int i = 0; i < 2; ++i) append_le(fields, 0xFFFFFFFFu);
  append_le(fields, static_cast<uint16_t>(entry.name.size()));
  append_le<uint16_t>(fields, 20);
  return fields;
}

inline std::string extra64(const RawEntry& entry) {
  std::string extra;
  for (const int value : {1, 16}) append_le(extra, static_cast<uint16_t>(value));
  append_le(extra, entry.size);
  append_le(extra, entry.packed);
  return extra;
}

inline std::string local_part(const RawEntry& entry) {
  return std::string("PK\3\4\x2d\0", 6) + shared_fields(entry) + entry.name + extra64(entry) + entry.data;
}

inline std::string directory_part(const RawEntry& entry, size_t offset) {
  std::string record = std::string("PK\1\2\x2d\0\x2d\0", 8) + shared_fields(entry) + std::string(10, '\0');
  append_le(record, static_cast<uint32_t>(offset));
  return record + entry.name + extra64(entry);
}

inline std::string end_part(size_t count, size_t bytes, size_t offset) {
  std::string end("PK\5\6\0\0\0\0", 8);
  for (int i = 0; i < 2; ++i) append_le(end, static_cast<uint16_t>(count));
  append_le(end, static_cast<uint32_t>(bytes));
  append_le(end, static_cast<uint32_t>(offset));
  return end + std::string(2, '\0');
}

inline std::string zip_of(const std::vector<RawEntry>& entries) {
  std::string file, directory;
  for (const RawEntry& entry : entries) {
    directory += directory_part(entry, file.size());
    file += local_part(entry);
  }
  return file + directory + end_part(entries.size(), directory.size(), file.size());
}

inline std::string content_of(const ZipReader& zip, size_t index) {
  std::string content(zip.entries()[index].size, '\0');
  zip.read(index, {}, std::as_writable_bytes(std::span(content)));
  return content;
}

inline std::string noise(size_t count) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < count) text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

}  // namespace vitrail::testing
