// The levels with dot-product instructions: emulated ones everywhere, real ones where the CPU has them.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/host/levels.h"

namespace vitrail::cpu::emulated_vnni {
const IsaKernels& kernels();
}
namespace vitrail::cpu::emulated_amx {
const IsaKernels& kernels();
}

namespace vitrail::testing {

template <typename Body>
inline void for_every_dot_level(const Body& body) {
  std::vector<const cpu::IsaKernels*> levels = {&cpu::emulated_vnni::kernels(),
                                                &cpu::emulated_amx::kernels()};
  for (IsaLevel level : available_isa_levels())
    if (level >= IsaLevel::kVnni) levels.push_back(&cpu::isa_kernels(level));
  for (const cpu::IsaKernels* isa : levels) {
    SCOPED_TRACE(isa->name);
    body(*isa);
  }
}

}  // namespace vitrail::testing
