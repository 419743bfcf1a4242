// The most this processor computes and moves, measured. The yardstick of bench, profile and doctor.
#pragma once

#include "backend/cpu/host/levels.h"
#include "base/thread_pool.h"

namespace vitrail {

// GFLOP/s in f32 with all threads of the pool; takes about a tenth of a second.
double measure_peak_gflops(ThreadPool& pool, IsaLevel level);

// GB/s of copying between buffers beyond the caches, bytes read and bytes written both counted.
double measure_copy_gbps(ThreadPool& pool);

}  // namespace vitrail
