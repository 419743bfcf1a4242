#include "tensor/dtype.h"

#include <bit>
#include <cstring>

#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vitrail {

namespace {
struct DTypeRow {
  const char* name;
  size_t bytes;
  bool is_float;
};
constexpr DTypeRow kRows[] = {{"f64", 8, true},  {"f32", 4, true},  {"f16", 2, true},  {"bf16", 2, true},
                              {"i64", 8, false}, {"i32", 4, false}, {"i16", 2, false}, {"i8", 1, false},
                              {"u8", 1, false},  {"bool", 1, false}};
const DTypeRow& row(DType dtype) {
  return kRows[static_cast<size_t>(dtype)];
}

double load(const void* source, DType from, size_t i) {
  switch (from) {
    case DType::kF64:
      return static_cast<const double*>(source)[i];
    case DType::kF32:
      return static_cast<const float*>(source)[i];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(source)[i]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(source)[i]);
    default:
      throw Error(ErrorKind::kInternal, strf("%s is not a float type", to_string(from)));
  }
}

void store(void* target, DType to, size_t i, double value) {
  switch (to) {
    case DType::kF64:
      static_cast<double*>(target)[i] = value;
      return;
    case DType::kF32:
      static_cast<float*>(target)[i] = static_cast<float>(value);
      return;
    case DType::kF16:
      static_cast<uint16_t*>(target)[i] = f32_to_f16(static_cast<float>(value));
      return;
    case DType::kBF16:
      static_cast<uint16_t*>(target)[i] = f32_to_bf16(static_cast<float>(value));
      return;
    default:
      throw Error(ErrorKind::kInternal, strf("%s is not a float type", to_string(to)));
  }
}
}  // namespace

size_t size_of(DType dtype) {
  return row(dtype).bytes;
}
const char* to_string(DType dtype) {
  return row(dtype).name;
}
bool is_float(DType dtype) {
  return row(dtype).is_float;
}

DType accumulator_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (name == kRows[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504: Inf
  if (magnitude < 0x38800000u) {  // subnormal half: let the FPU round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

namespace {
#if defined(__x86_64__)
// Converts whole groups of eight and returns how many elements that was.
[[gnu::target("avx,f16c")]] size_t widen_f16_by_eights(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
#endif

void widen_f16(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("avx2");  // no processor has it without F16C
  if (has_instruction) i = widen_f16_by_eights(from, to, count);
#endif
  for (; i < count; ++i) to[i] = f16_to_f32(from[i]);
}

void widen_bf16(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = bf16_to_f32(from[i]);
}
}  // namespace

void convert_floats(const void* source, DType from, void* target, DType to, size_t count) {
  if (count == 0) return;  // nothing may have no address, which memcpy must not be given
  if (from == to) {
    std::memcpy(target, source, count * size_of(from));
    return;
  }
  // This is the conversion that loading weights needs.
  if (from == DType::kF16 && to == DType::kF32)
    return widen_f16(static_cast<const uint16_t*>(source), static_cast<float*>(target), count);
  if (from == DType::kBF16 && to == DType::kF32)
    return widen_bf16(static_cast<const uint16_t*>(source), static_cast<float*>(target), count);
  for (size_t i = 0; i < count; ++i) store(target, to, i, load(source, from, i));
}

}  // namespace vitrail
