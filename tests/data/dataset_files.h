// Small datasets written to a temporary folder, for the tests of the formats and of what reads them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "data/decode.h"
#include "image/image.h"

namespace vitrail::test {

class DataFolder {
 public:
  DataFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vitrail-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~DataFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  // Creates folders on the way.
  std::string file(const std::string& name, const std::string& content) const {
    const std::filesystem::path target = path(name);
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target, std::ios::binary) << content;
    return target.string();
  }
  std::string folder(const std::string& name) const {
    std::filesystem::create_directories(path(name));
    return path(name);
  }

 private:
  std::string path_;
};

// A grey level that identifies the image.
inline Image flat(int64_t side, uint8_t level) {
  Image image = Image::blank(side, side, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), level);
  return image;
}

inline std::string png(const Image& image) {
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}
inline std::string png(uint8_t level, int64_t side = 4) {
  return png(flat(side, level));
}

// A record of CIFAR's binary files: pixel i of each plane is (first + i) mod 256.
inline std::string cifar_record(const std::string& labels, int first) {
  std::string record = labels;
  for (int i = 0; i < 3072; ++i) record += static_cast<char>(first + i);
  return record;
}

inline std::string big_endian(uint32_t value) {
  std::string text;
  append_le(text, __builtin_bswap32(value));
  return text;
}

// An idx file of bytes.
inline std::string idx_file(const std::vector<uint32_t>& extents, const std::string& values) {
  std::string text = big_endian(0x800 + static_cast<uint32_t>(extents.size()));
  for (const uint32_t extent : extents) text += big_endian(extent);
  return text + values;
}

// One member of a tar file: a ustar header with its checksum, the content and its padding.
struct TarEntry {
  std::string name, content;
  char type = '0';
  std::string size_field = {};  // instead of the content's size
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
};

inline std::string tar_member(const TarEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(124, entry.size_field.empty() ? strf("%011llo", static_cast<unsigned long long>(entry.content.size()))
                                    : entry.size_field);
  put(148, "        ");
  header[156] = entry.type;
  put(257, entry.magic);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, strf("%06o", sum) + std::string("\0 ", 2));
  std::string member = header + entry.content;
  member.resize((member.size() + 511) / 512 * 512);
  return member;
}

inline std::string tar_file(const std::vector<TarEntry>& entries) {
  std::string file;
  for (const TarEntry& entry : entries) file += tar_member(entry);
  return file + std::string(1024, '\0');
}

template <typename Body>
void expect_refused(const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "accepted; expected a refusal with: " << part;
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kConfig) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected: " << part << "\nfound: " << error.what();
  }
}

}  // namespace vitrail::test
