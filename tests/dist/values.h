// Values that ranks exchange in tests, in every element type, with what is expected of them. Knows no ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace vitrail {

inline constexpr DType kSummed[] = {DType::kF64,  DType::kF32, DType::kF16,
                                    DType::kBF16, DType::kI64, DType::kI32};
inline constexpr DType kMoved[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                   DType::kI32, DType::kI16, DType::kI8,  DType::kU8,   DType::kBool};
inline constexpr size_t kCounts[] = {0, 1, 2, 7, 16, 31, 257, 1009, 4099, 65537};

// A typed array that is filled by whole numbers small enough for every type.
class Values {
 public:
  Values(DType dtype, size_t count, int fill = 0) : dtype_(dtype), bytes_(count * size_of(dtype)) {
    for (size_t i = 0; i < count; ++i) set(i, fill);
  }
  size_t count() const { return bytes_.size() / size_of(dtype_); }
  DType dtype() const { return dtype_; }
  char* data() { return bytes_.data(); }
  char* at(size_t i) { return bytes_.data() + i * size_of(dtype_); }
  bool operator==(const Values& other) const { return bytes_ == other.bytes_; }

  void set(size_t i, int value) {
    switch (dtype_) {
      case DType::kF64:
        return put(i, static_cast<double>(value));
      case DType::kF32:
        return put(i, static_cast<float>(value));
      case DType::kF16:
        return put(i, f32_to_f16(static_cast<float>(value)));
      case DType::kBF16:
        return put(i, f32_to_bf16(static_cast<float>(value)));
      case DType::kI64:
        return put(i, static_cast<int64_t>(value));
      case DType::kI32:
        return put(i, value);
      case DType::kI16:
        return put(i, static_cast<int16_t>(value));
      default:
        return put(i, static_cast<int8_t>(value));
    }
  }

 private:
  template <typename T>
  void put(size_t i, T value) {
    std::memcpy(at(i), &value, sizeof value);
  }
  DType dtype_;
  std::vector<char> bytes_;
};

// A number that depends on all of its arguments, in [0, 8).
inline int mixed(size_t i, int from, int to = 0) {
  return static_cast<int>((i * 7 + i / 11 + static_cast<size_t>(from) * 3 + static_cast<size_t>(to) * 5) % 8);
}

inline void expect_equal(Values& found, Values& expected, const std::string& what) {
  EXPECT_TRUE(found == expected) << what << " of " << to_string(found.dtype()) << " x " << found.count();
}

}  // namespace vitrail
