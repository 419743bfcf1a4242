// The measured peak of this processor in arithmetic and in memory bandwidth: the yardstick of bench, profile
// and doctor.
#pragma once

#include "backend/cpu/host/levels.h"
#include "base/thread_pool.h"

namespace vitrail {

// GFLOP/s in f32 with all threads of the pool; the measurement takes about a tenth of a second.
double measure_peak_gflops(ThreadPool& pool, IsaLevel level);

// GB/s of a copy between buffers larger than the caches; bytes read and bytes written are both counted.
double measure_copy_gbps(ThreadPool& pool);

}  // namespace vitrail
