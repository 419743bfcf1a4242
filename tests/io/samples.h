// The sample files of tests/data/io and the rule their elements follow (tools/make_io_samples.py), and small
// builders of byte strings for hostile files.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "io/tensor_source.h"
#include "source_root.h"

namespace vitrail::testing {

inline std::string sample(const std::string& name) {
  return std::string(VT_SOURCE_DIR) + "/tests/data/io/" + name;
}

inline std::string slurp(const std::string& path) {
  return read_file(path, 1 << 20);
}

// A folder that goes away with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrail-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string put(const TempFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return folder / name;
}

inline double expected_value(const TensorInfo& info, size_t i) {
  const int value = static_cast<int>((3 * i + info.name.size()) % 11) - 5;
  if (info.dtype == DType::kBool) return value > 0;
  return info.dtype == DType::kU8 ? std::abs(value) : value;
}

inline double element(const std::vector<std::byte>& bytes, DType dtype, size_t i) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (dtype) {
    case DType::kF64:
      return as(double{});
    case DType::kF32:
      return as(float{});
    case DType::kF16:
      return f16_to_f32(as(uint16_t{}));
    case DType::kBF16:
      return bf16_to_f32(as(uint16_t{}));
    case DType::kI64:
      return static_cast<double>(as(int64_t{}));
    case DType::kI32:
      return as(int32_t{});
    case DType::kI16:
      return as(int16_t{});
    case DType::kI8:
      return as(int8_t{});
    default:
      return as(uint8_t{});
  }
}

inline std::vector<std::byte> bytes_of(const TensorSource& source, size_t index) {
  std::vector<std::byte> bytes(source.tensors()[index].bytes);
  source.read(index, bytes);
  return bytes;
}

// Every element of the named tensor follows the rule of the samples.
inline void expect_rule(const TensorSource& source, const std::string& name) {
  SCOPED_TRACE(name);
  const auto index = source.find(name);
  ASSERT_TRUE(index);
  const TensorInfo& info = source.tensors()[*index];
  const std::vector<std::byte> bytes = bytes_of(source, *index);
  for (size_t i = 0; i < bytes.size() / size_of(info.dtype); ++i)
    ASSERT_EQ(element(bytes, info.dtype, i), expected_value(info, i)) << "element " << i;
}

inline void read_all(const TensorSource& source) {
  for (size_t i = 0; i < source.tensors().size(); ++i) bytes_of(source, i);
}

// Requires that `body` throws an Error of kind data whose text contains `part`.
template <typename Body>
void expect_refusal(const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "accepted; expected a refusal with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected: " << part << "\nfound: " << error.what();
  }
}

inline std::shared_ptr<const ByteSource> in_memory(const std::string& content) {
  return std::make_shared<MemoryBytes>("memory", content);
}

// A tensor of this shape and type, ready to be written, following the rule of the samples (f32 only).
inline TensorToWrite rule_tensor(const std::string& name, std::vector<int64_t> shape) {
  TensorInfo info{name, DType::kF32, std::move(shape), 4};
  for (const int64_t extent : info.shape) info.bytes *= static_cast<size_t>(extent);
  return {info, [info](std::span<std::byte> target) {
            for (size_t i = 0; i < target.size() / 4; ++i) {
              const auto value = static_cast<float>(expected_value(info, i));
              std::memcpy(target.data() + 4 * i, &value, 4);
            }
          }};
}

}  // namespace vitrail::testing
