// Training images from 8-bit pixels by their recipes: neighbouring threads compute neighbouring pixels, all
// channels of them. Levels become values by a table in shared memory, so that results equal the table's bit
// for bit; the blend's products and sum are rounded one by one for the same reason.
#include <algorithm>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kImageThreads = 256;
constexpr int kFlight = 4;                        // pixels a thread has in flight
constexpr int kBlockPixels = 16 * kImageThreads;  // at most, of one image
constexpr int kLevels = 256;

struct Geometry {
  const uint8_t* pixels;
  const ImageRecipe* recipes;
  const float* levels;
  Elements out;
  int height, width;
  int parts, part_pixels;  // blocks per image, and pixels of each
};

__device__ bool holds(const ImageBox& box, int y, int x) {
  return y >= box.top && y < box.top + box.height && x >= box.left && x < box.left + box.width;
}

__device__ int mirrored(int at, int size) {
  if (at < 0) at = -at;
  if (at >= size) at = 2 * (size - 1) - at;
  return min(max(at, 0), size - 1);
}

// The offset of the recipe's pixel (y, x) in its source image; -1: outside, where it is black.
__device__ int place_of(const ImageRecipe& recipe, int y, int x, int height, int width) {
  y = recipe.top + (recipe.flip_rows ? height - 1 - y : y);
  x = recipe.left + (recipe.flip_columns ? width - 1 - x : x);
  if (recipe.mirror) return mirrored(y, height) * width + mirrored(x, width);
  return y < 0 || y >= height || x < 0 || x >= width ? -1 : y * width + x;
}

// Reads all channels of one pixel, before it is mixed with the partner image.
template <int kChannels>
__device__ void read_pixel(const Geometry& g, const ImageRecipe& recipe, const float (*table)[kLevels], int y,
                           int x, float (&v)[kChannels]) {
  bool zero = recipe.source < 0;
  for (int i = 0; i < recipe.erased; ++i) zero = zero || holds(recipe.box[i], y, x);
  const int place = place_of(recipe, y, x, g.height, g.width);
  const int64_t from = (static_cast<int64_t>(recipe.source) * g.height * g.width + place) * kChannels;
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    const int level = zero || place < 0 ? 0 : g.pixels[from + c];
    v[c] = zero ? 0.0f : table[c][level];
  }
}

template <int kChannels>
__device__ void make_pixel(const Geometry& g, const ImageRecipe& own, const ImageRecipe& partner,
                           const float (*table)[kLevels], int pixel, float (&v)[kChannels]) {
  const int y = pixel / g.width, x = pixel - y * g.width;
  if (own.mix == ImageMix::kCut)
    return read_pixel<kChannels>(g, holds(own.cut, y, x) ? partner : own, table, y, x, v);
  read_pixel<kChannels>(g, own, table, y, x, v);
  if (own.mix != ImageMix::kBlend) return;
  float other[kChannels];
  read_pixel<kChannels>(g, partner, table, y, x, other);
#pragma unroll
  for (int c = 0; c < kChannels; ++c)
    v[c] = __fadd_rn(__fmul_rn(v[c], own.lambda), __fmul_rn(other[c], own.rest));
}

template <int kChannels>
__global__ void __launch_bounds__(kImageThreads) make_kernel(const Geometry g) {
  __shared__ float table[kChannels][kLevels];
  __shared__ int32_t recipe_words[2][kRecipeWords];  // the image's own, and its partner's
  const int row = static_cast<int>(blockIdx.x) / g.parts, part = static_cast<int>(blockIdx.x) % g.parts;
  for (int i = threadIdx.x; i < kChannels * kLevels; i += kImageThreads) (&table[0][0])[i] = g.levels[i];
  if (threadIdx.x < 2 * kRecipeWords) {
    const bool second = threadIdx.x >= kRecipeWords;
    const ImageRecipe& own = g.recipes[row];
    const ImageRecipe& from = second && own.mix != ImageMix::kNone ? g.recipes[own.partner] : own;
    const int word = threadIdx.x - (second ? static_cast<int>(kRecipeWords) : 0);
    recipe_words[second][word] = reinterpret_cast<const int32_t*>(&from)[word];
  }
  __syncthreads();
  const auto* recipe = reinterpret_cast<const ImageRecipe*>(&recipe_words[0][0]);
  const int pixels = g.height * g.width, end = min(pixels, (part + 1) * g.part_pixels);
  const int64_t to = static_cast<int64_t>(row) * kChannels * pixels;
  for (int first = part * g.part_pixels + static_cast<int>(threadIdx.x); first < end;
       first += kFlight * kImageThreads) {
    float v[kFlight][kChannels];
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (first + u * kImageThreads < end)
        make_pixel<kChannels>(g, recipe[0], recipe[1], table, first + u * kImageThreads, v[u]);
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        if (first + u * kImageThreads < end)
          g.out.put(to + static_cast<int64_t>(c) * pixels + first + u * kImageThreads, v[u][c]);
  }
}

void make(Session& session, const ImagesCall& call) {
  const int64_t pixels = call.height * call.width;
  if (call.batch * pixels == 0) return;
  const int64_t parts = (pixels + kBlockPixels - 1) / kBlockPixels, blocks = call.batch * parts;
  VT_CHECK(
      pixels < int64_t{1} << 30 && blocks < int64_t{1} << 31 && (call.channels == 1 || call.channels == 3),
      "%lld images of %lld pixels", static_cast<long long>(call.batch), static_cast<long long>(pixels));
  const Geometry g{.pixels = call.pixels,
                   .recipes = call.recipes,
                   .levels = call.levels,
                   .out = call.out,
                   .height = static_cast<int>(call.height),
                   .width = static_cast<int>(call.width),
                   .parts = static_cast<int>(parts),
                   .part_pixels = static_cast<int>((pixels + parts - 1) / parts)};
  const auto grid = static_cast<unsigned>(blocks);
  if (call.channels == 3)
    make_kernel<3><<<grid, kImageThreads, 0, session.stream>>>(g);
  else
    make_kernel<1><<<grid, kImageThreads, 0, session.stream>>>(g);
  check_launch("make_images");
}

}  // namespace

ImagesApi images_api() {
  return {.make = make};
}

}  // namespace vitrail::cuda
