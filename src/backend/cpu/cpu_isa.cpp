#include "backend/cpu/cpu_isa.h"

#include "base/error.h"

namespace vitrail {
namespace {

// __builtin_cpu_supports also asks whether the operating system saves the wider registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

struct Level {
  IsaLevel level;
  const char* name;
  bool (*available)();
  const IsaKernels& (*kernels)();
};

constexpr Level kLevels[] = {
    {IsaLevel::kBaseline, "baseline", [] { return true; }, baseline::kernels},
    {IsaLevel::kAvx2, "avx2", has_avx2, avx2::kernels},
    {IsaLevel::kAvx512, "avx512", has_avx512, avx512::kernels},
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

IsaLevel best_isa() {
  return available_isa_levels().back();
}

const IsaKernels& isa_kernels(IsaLevel level) {
  const Level& row = row_of(level);
  if (!row.available()) {
    throw Error(ErrorKind::kDevice, strf("this processor cannot run %s instructions", row.name),
                strf("use %s or leave the choice to Vitrail", to_string(best_isa())));
  }
  return row.kernels();
}

}  // namespace vitrail
