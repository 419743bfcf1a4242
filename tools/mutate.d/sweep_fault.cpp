// Which fault acts, by the environment's VT_FAULT, and which of the others a process and those it forks have
// met.
#include "base/vt_fault.h"

#include <sys/mman.h>

#include <cstdlib>

alignas(4096) unsigned char vt_fault_met[kVtMostFaults];
static int vt_fault_chosen = 0;

// Before everything else that is made when a program starts. The table is shared, so that what a child meets
// is known.
__attribute__((constructor(101))) static void vt_fault_begin() {
  if (const char* text = std::getenv("VT_FAULT")) vt_fault_chosen = std::atoi(text);
  mmap(vt_fault_met, sizeof(vt_fault_met), PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1,
       0);
}

bool vt_fault_unmet(int n) {
  if (n == vt_fault_chosen) return true;
  __atomic_store_n(&vt_fault_met[n], 1, __ATOMIC_RELAXED);
  return false;
}
