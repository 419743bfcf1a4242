#include "io/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace vitrail {

namespace {
constexpr size_t kChunk = 4096;  // elements widened at a time

template <typename T>
void widen_integers(const std::byte* source, std::span<double> target) {
  for (size_t i = 0; i < target.size(); ++i) {
    T value;
    std::memcpy(&value, source + i * sizeof value, sizeof value);
    target[i] = static_cast<double>(value);
  }
}

void widen(const std::byte* source, DType dtype, std::span<double> target) {
  if (is_float(dtype)) return convert_floats(source, dtype, target.data(), DType::kF64, target.size());
  switch (dtype) {
    case DType::kI64:
      return widen_integers<int64_t>(source, target);
    case DType::kI32:
      return widen_integers<int32_t>(source, target);
    case DType::kI16:
      return widen_integers<int16_t>(source, target);
    case DType::kI8:
      return widen_integers<int8_t>(source, target);
    case DType::kU8:
    case DType::kBool:
      return widen_integers<uint8_t>(source, target);
    default:
      VT_CHECK(false, "no statistics for %s", to_string(dtype));
  }
}
}  // namespace

void StatsScan::add(std::span<const std::byte> bytes) {
  std::vector<double> values(kChunk);
  const size_t unit = size_of(dtype_), count = bytes.size() / unit;
  for (size_t first = 0; first < count; first += kChunk) {
    const std::span<double> chunk(values.data(), std::min(kChunk, count - first));
    widen(bytes.data() + first * unit, dtype_, chunk);
    for (const double value : chunk) {
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? stats_.nan : stats_.inf);
        continue;
      }
      if (stats_.finite++ == 0) stats_.min = stats_.max = value;
      stats_.min = std::min(stats_.min, value);
      stats_.max = std::max(stats_.max, value);
      sum_ += value;
    }
  }
}

TensorStats StatsScan::result() const {
  TensorStats stats = stats_;
  if (stats.finite > 0) stats.mean = sum_ / static_cast<double>(stats.finite);
  return stats;
}

}  // namespace vitrail
