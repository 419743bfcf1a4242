#include "backend/cpu/lowp/convert.h"

#include <cstring>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {
Float16 float16_of(DType dtype) {
  return dtype == DType::kF16 ? Float16::kF16 : Float16::kBF16;
}
}  // namespace

bool converts(DType from, DType to) {
  return from == to || (from == DType::kF32 && is_float16(to)) || (is_float16(from) && to == DType::kF32);
}

void parallel_convert(const CpuContext& context, const Conversion& what, const void* from, void* to) {
  const DType source = what.from, target = what.to;
  VT_CHECK(converts(source, target), "no conversion from %s to %s", to_string(source), to_string(target));
  const auto size = static_cast<int64_t>(size_of(source)), to_size = static_cast<int64_t>(size_of(target));
  spread_rows(context, what.elems, 1, [&](int64_t first, int64_t count) {
    const std::byte* x = static_cast<const std::byte*>(from) + first * size;
    std::byte* y = static_cast<std::byte*>(to) + first * to_size;
    if (source == target)
      std::memcpy(y, x, static_cast<size_t>(count * size));
    else if (source == DType::kF32)
      context.isa.narrow(float16_of(target), reinterpret_cast<const float*>(x), count,
                         reinterpret_cast<uint16_t*>(y));
    else
      context.isa.widen(float16_of(source), reinterpret_cast<const uint16_t*>(x), count,
                        reinterpret_cast<float*>(y));
  });
}

}  // namespace vitrail::cpu
