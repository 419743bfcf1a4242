// Copies that the CUDA plugin makes of values on their way to other ranks: runs of bytes at two pitches.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

struct BlockCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t to_pitch = 0, from_pitch = 0;  // bytes from one run to the next
  size_t run = 0, runs = 0;             // bytes of a run, and how many there are
};

struct MovesApi {
  void (*copy)(Session&, const BlockCopy&);
  void (*clear)(Session&, void* target, size_t bytes);
};

}  // namespace vitrail::cuda
