// Images as a matrix of patches, in the order of a patch embedding's weight: one block per patch. And rows
// that are padded with zeros, or cut.
#include <algorithm>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

struct PatchesArgs {
  Elements images, out;
  int64_t height, width;
  uint32_t across, patches;                  // in a row of patches, in an image
  uint32_t channels, rows, columns, length;  // of a patch, in elements
  uint32_t padded;                           // the length with the zeros after it
};

// Copies kWide elements at a time, a divisor of the patch's columns and of the image's width.
template <int kWide>
__global__ void patches_kernel(const PatchesArgs p) {
  const uint32_t image = blockIdx.x / p.patches, patch = blockIdx.x % p.patches;
  const int64_t top = static_cast<int64_t>(patch / p.across) * p.rows;
  const int64_t left = static_cast<int64_t>(patch % p.across) * p.columns;
  const int64_t to = static_cast<int64_t>(blockIdx.x) * p.padded;
  await_launches();
  for (uint32_t i = threadIdx.x * kWide; i < p.length; i += blockDim.x * kWide) {
    const uint32_t line = i / p.columns, column = i % p.columns;
    const int64_t channel = static_cast<int64_t>(image) * p.channels + line / p.rows;
    const int64_t from = (channel * p.height + top + line % p.rows) * p.width + left + column;
    if constexpr (kWide == 8) {
      float v[8];
      p.images.get8(from, v);
      p.out.put8(to + i, v);
    } else {
      p.out.put(to + i, p.images.get(from));
    }
  }
  for (uint32_t i = p.length + threadIdx.x; i < p.padded; i += blockDim.x) p.out.put(to + i, 0);
}

struct RowsArgs {
  Elements from, to;
  int64_t from_width, to_width;
  bool adds;
};

// One block per row.
__global__ void rows_kernel(const RowsArgs p) {
  const int64_t from = blockIdx.x * p.from_width, to = blockIdx.x * p.to_width;
  for (int64_t i = threadIdx.x; i < p.to_width; i += blockDim.x) {
    const float value = i < p.from_width ? p.from.get(from + i) : 0;
    p.to.put(to + i, p.adds ? p.to.get(to + i) + value : value);
  }
}

}  // namespace

void gather_patches(Session& session, const PatchesCall& call) {
  const int64_t across = call.width / call.columns, patches = call.height / call.rows * across;
  const int64_t length = call.channels * call.rows * call.columns, blocks = call.batch * patches;
  VT_CHECK(length <= call.length && call.length < int64_t{1} << 30 && blocks < int64_t{1} << 31,
           "%lld patches of %lld elements", static_cast<long long>(blocks), static_cast<long long>(length));
  const PatchesArgs args{.images = call.images,
                         .out = call.out,
                         .height = call.height,
                         .width = call.width,
                         .across = static_cast<uint32_t>(across),
                         .patches = static_cast<uint32_t>(patches),
                         .channels = static_cast<uint32_t>(call.channels),
                         .rows = static_cast<uint32_t>(call.rows),
                         .columns = static_cast<uint32_t>(call.columns),
                         .length = static_cast<uint32_t>(length),
                         .padded = static_cast<uint32_t>(call.length)};
  const bool whole = call.columns % 8 == 0 && call.width % 8 == 0;
  const int64_t wanted = (length / (whole ? 8 : 1) + 31) / 32 * 32;
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>(wanted, 32, 256));
  launch_early(session, "gathering patches", whole ? patches_kernel<8> : patches_kernel<1>,
               {static_cast<unsigned>(blocks), threads}, args);
}

void copy_rows(Session& session, const RowsCall& call) {
  if (call.rows == 0) return;
  const RowsArgs args{.from = call.from,
                      .to = call.to,
                      .from_width = call.from_width,
                      .to_width = call.to_width,
                      .adds = call.adds};
  rows_kernel<<<static_cast<unsigned>(call.rows), 256, 0, session.stream>>>(args);
  check_launch("copying rows");
}

}  // namespace vitrail::cuda
