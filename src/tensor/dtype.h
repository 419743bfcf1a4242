// Element types and the conversions between them. Data without mathematics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vitrail {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

size_t size_of(DType dtype);
const char* to_string(DType dtype);                       // "f32"
std::optional<DType> parse_dtype(std::string_view name);  // accepts what to_string gives
bool is_float(DType dtype);
// Returns the type in which sums over many elements are kept: f64 for f64, f32 for every other float type.
DType accumulator_dtype(DType dtype);

// Conversions of f16 (IEEE half) and bf16 as raw 16-bit patterns; rounding is to nearest even.
float f16_to_f32(uint16_t half);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

// Storage types of f16 and bf16, so that plain loops can be written once over every float type.
struct F16 {
  uint16_t bits = 0;
  F16() = default;
  explicit F16(double value) : bits(f32_to_f16(static_cast<float>(value))) {}
  operator double() const { return f16_to_f32(bits); }
};
struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(double value) : bits(f32_to_bf16(static_cast<float>(value))) {}
  operator double() const { return bf16_to_f32(bits); }
};

// Converts `count` elements between any two float types (f64, f32, f16, bf16).
void convert_floats(const void* source, DType from, void* target, DType to, size_t count);

}  // namespace vitrail
