#include "backend/cpu/host/levels.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

namespace vitrail {
namespace {

// __builtin_cpu_supports also checks that the operating system saves the wider registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
}

// Returns whether the processor has AMX tiles with bf16 and int8 dot products, and the operating system saves
// tiles (bits 17 and 18 of XCR0). __builtin_cpu_supports knows neither in older compilers.
bool processor_has_tiles() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kOsxsave = 1u << 27;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsxsave)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & (kBf16 | kTile | kInt8)) != (kBf16 | kTile | kInt8)) return false;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3u << 17;
  return (low & kTileState) == kTileState;
}

// Linux grants the AMX tile data to a process on request; the threads of the process share the permission.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  static const bool usable = has_vnni() && processor_has_tiles() && may_use_tiles();
  return usable;
}

struct Level {
  IsaLevel level;
  const char* name;
  bool (*available)();
  const cpu::IsaKernels& (*kernels)();
};

constexpr Level kLevels[] = {
    {IsaLevel::kBaseline, "baseline", [] { return true; }, cpu::baseline::kernels},
    {IsaLevel::kAvx2, "avx2", has_avx2, cpu::avx2::kernels},
    {IsaLevel::kAvx512, "avx512", has_avx512, cpu::avx512::kernels},
    {IsaLevel::kVnni, "vnni", has_vnni, cpu::vnni::kernels},
    {IsaLevel::kAmx, "amx", has_amx, cpu::amx::kernels},
};

const Level& row_of(IsaLevel level) {
  return kLevels[static_cast<size_t>(level)];
}

}  // namespace

const char* to_string(IsaLevel level) {
  return row_of(level).name;
}

std::vector<IsaLevel> available_isa_levels() {
  std::vector<IsaLevel> levels;
  for (const Level& row : kLevels)
    if (row.available()) levels.push_back(row.level);
  return levels;
}

std::vector<IsaLevel> all_isa_levels() {
  std::vector<IsaLevel> levels;
  for (const Level& row : kLevels) levels.push_back(row.level);
  return levels;
}

IsaLevel best_isa() {
  return available_isa_levels().back();
}

const cpu::IsaKernels& cpu::isa_sizes(IsaLevel level) {
  return row_of(level).kernels();
}

const cpu::IsaKernels& cpu::isa_kernels(IsaLevel level) {
  const Level& row = row_of(level);
  if (!row.available()) {
    throw Error(ErrorKind::kDevice, strf("this processor cannot run %s instructions", row.name),
                strf("use %s or leave the choice to Vitrail", to_string(best_isa())));
  }
  return row.kernels();
}

}  // namespace vitrail
