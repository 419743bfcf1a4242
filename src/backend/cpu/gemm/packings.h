// The names of the layouts that weights are packed into: one row an instruction set, one column a kind of
// GEMM.
#pragma once

#include <string_view>

#include "backend/cpu/host/levels.h"
#include "backend/device_info.h"
#include "base/error.h"

namespace vitrail::cpu {

struct Packings {
  IsaLevel level;
  std::string_view f32, bf16, int8;
  std::string_view split;  // f32 by bf16 parts
};

// A name that no weight has, where there is no such GEMM: an empty one would be that of a plain weight.
inline constexpr std::string_view kNoPacking = "none";

// The f32 kernels of instruction sets above avx512 are its own.
inline constexpr Packings kPackings[] = {
    {IsaLevel::kBaseline, "panels-baseline", "bf16-baseline", "int8-baseline", kNoPacking},
    {IsaLevel::kAvx2, "panels-avx2", "bf16-avx2", "int8-avx2", kNoPacking},
    {IsaLevel::kAvx512, "panels64-avx512", "bf16x64-avx512", "int8x64-avx512", kNoPacking},
    {IsaLevel::kVnni, "panels64-avx512", "bf16-vnni", "int8-vnni", kNoPacking},
    {IsaLevel::kAmx, "panels64-avx512", "bf16-amx", "int8-amx", "split-amx"},
};

inline const Packings& packings_of(const DeviceInfo& device) {
  for (const Packings& row : kPackings)
    if (row.level == static_cast<IsaLevel>(device.isa)) return row;
  throw Error(ErrorKind::kInternal, strf("no packed layouts of instruction set %d", device.isa));
}

}  // namespace vitrail::cpu
