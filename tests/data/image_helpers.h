// Helpers of the image tests: noise by the rule of tools/make_image_goldens.py, its tables and files.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "image/image.h"
#include "source_root.h"

namespace vitrail::test {

inline uint8_t hashed(uint32_t index, uint32_t seed) {
  uint32_t h = index + seed * 0x9E3779B9u;
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return static_cast<uint8_t>((h ^ h >> 16) >> 24);
}

// Even seeds: bytes; odd seeds: black or white.
inline Image noise(int64_t height, int64_t width, int64_t channels, uint32_t seed) {
  Image image = Image::blank(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const uint8_t byte = hashed(static_cast<uint32_t>(i), seed);
    image.pixels[i] = seed % 2 == 0 ? byte : byte >= 128 ? 255 : 0;
  }
  return image;
}

inline std::string crc(const Image& image) {
  return strf("%08lx", crc32(0, image.pixels.data(), static_cast<uInt>(image.pixels.size())));
}

inline std::string golden(const std::string& name) {
  return VT_SOURCE_DIR "/tests/golden/images/" + name;
}

// Calls `check` with each line of a table that is not a comment.
inline void for_each_line(const std::string& table, const std::function<void(std::istringstream&)>& check) {
  std::ifstream file(golden(table));
  ASSERT_TRUE(file.good()) << golden(table);
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    SCOPED_TRACE(line);
    check(fields);
    ASSERT_FALSE(fields.fail());
    ++lines;
  }
  ASSERT_GT(lines, 0);
}

inline std::vector<uint8_t> bytes_of(const std::string& content) {
  return {content.begin(), content.end()};
}

inline std::vector<uint8_t> sample(const std::string& name) {
  return bytes_of(read_file(golden(name), 1 << 20));
}

inline std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for_each_line("samples.txt", [&](std::istringstream& fields) {
    names.emplace_back();
    fields >> names.back();
  });
  return names;
}

// Returns the Error that `body` throws; fails the test when it throws none.
template <typename Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return Error(ErrorKind::kInternal, "");
}

}  // namespace vitrail::test
