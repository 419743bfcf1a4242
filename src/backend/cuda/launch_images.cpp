// Launches of the op that makes training images from 8-bit pixels.
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

namespace {

std::string declines_images(const NodeView& node, const DeviceInfo&) {
  const TensorDesc& out = node.outs[0];
  if (out.dtype == DType::kF64) return "makes images in f32, bf16 and f16";
  const int64_t channels = out.shape.local('C');
  if (channels != 1 && channels != 3)
    return strf("makes images of 1 or 3 channels, not %lld", static_cast<long long>(channels));
  if (out.shape.local('Y') * out.shape.local('X') >= int64_t{1} << 30) return "images of 2^30 pixels";
  return {};
}

void run_make_images(const KernelArgs& args) {
  const Shape& out = args.outs[0].shape();
  api().images.make(session(args), {.pixels = static_cast<const uint8_t*>(args.ins[0].data()),
                                    .recipes = static_cast<const ImageRecipe*>(args.ins[1].data()),
                                    .levels = static_cast<const float*>(args.ins[2].data()),
                                    .out = operand(args.outs[0]),
                                    .batch = out[0].local,
                                    .channels = out[1].local,
                                    .height = out[2].local,
                                    .width = out[3].local});
}

}  // namespace

std::vector<OpKernels> image_kernels() {
  return {{"make_images", {cuda_kernel("by recipe", run_make_images, declines_images)}}};
}

}  // namespace vitrail::cuda
