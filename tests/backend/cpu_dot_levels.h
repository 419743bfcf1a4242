// The levels with dot-product instructions: emulated ones everywhere, real ones where the CPU has them.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/cpu_isa.h"

namespace vitrail::emulated_vnni {
const IsaKernels& kernels();
}
namespace vitrail::emulated_amx {
const IsaKernels& kernels();
}

namespace vitrail::testing {

template <typename Body>
inline void for_every_dot_level(const Body& body) {
  std::vector<const IsaKernels*> levels = {&emulated_vnni::kernels(), &emulated_amx::kernels()};
  for (IsaLevel level : available_isa_levels())
    if (level >= IsaLevel::kVnni) levels.push_back(&isa_kernels(level));
  for (const IsaKernels* isa : levels) {
    SCOPED_TRACE(isa->name);
    body(*isa);
  }
}

}  // namespace vitrail::testing
