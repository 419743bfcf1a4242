// Resamples patch-embedding weights to another patch size as FlexiViT does: the new weights map a resized
// patch to what the old ones made of the patch, as nearly as least squares allows. It serves a model that is
// opened at another patch size than its file's. Knows square kernels, no files.
#pragma once

#include <cstdint>
#include <span>

namespace vitrail {

// `source` holds kernels of from x from weights, `target` as many of to x to. The resize is bicubic and
// antialiased; its pseudo-inverse is that of one axis applied to rows and columns.
void resample_patches(std::span<const float> source, int64_t from, std::span<float> target, int64_t to);

}  // namespace vitrail
