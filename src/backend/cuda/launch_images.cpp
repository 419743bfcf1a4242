// Launches of the op that makes training images from 8-bit pixels.
#include "backend/cuda/launch.h"
#include "ops/make_images.h"

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

Prepared prepare_make_images(const NodeView& node, const DeviceInfo&) {
  const Shape& out = node.outs[0].shape;
  Bound<ImagesCall> call;
  call->batch = out[0].local;
  call->channels = out[1].local;
  call->height = out[2].local;
  call->width = out[3].local;
  call.bind(call->pixels, input(node, 0)).bind(call->recipes, input(node, 1));
  call.bind(call->levels, input(node, 2)).bind(call->out, output(node));
  return prepared(&ImagesApi::make, call);
}

}  // namespace

std::vector<OpKernels> image_kernels() {
  return {row<MakeImagesOp>({cuda_kernel("by recipe", prepare_make_images, declines_images)})};
}

}  // namespace vitrail::cuda
