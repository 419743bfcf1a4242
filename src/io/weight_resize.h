// Weights brought to another image size or patch size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vit_config.h"

namespace vitrail {

// Resizes a table of position embeddings to another patch grid by one of the four published rules. It serves
// a model that is opened at another image size than its file's. Knows grids and rows, no files.
struct PosGrid {
  int64_t height = 0, width = 0;
  int64_t cells() const { return height * width; }
  bool operator==(const PosGrid&) const = default;
};

// `source` holds prefix rows (copied, never resized) and then from.cells() rows of `dim` values, row by
// row of the grid; `target` the same with to.cells().
//   timm: bicubic (a = -0.5), antialiased; hf: bicubic (a = -0.75), half-pixel centres;
//   torchvision: bicubic (a = -0.75), corners aligned; jax: bilinear, corners aligned.
void resize_positions(PosResize rule, std::span<const float> source, PosGrid from, std::span<float> target,
                      PosGrid to, int64_t prefix, int64_t dim);

// Returns the rule along one axis, as `out` rows of `in` weights.
std::vector<double> resize_matrix(PosResize rule, int64_t in, int64_t out);

// Resamples patch-embedding weights to another patch size as FlexiViT does: the new weights answer a resized
// patch as the old ones answered the patch, as nearly as least squares allows. It serves a model that is
// opened at another patch size than its file's. Knows square kernels, no files.

// `source` holds kernels of from x from weights, `target` as many of to x to. The resize is bicubic and
// antialiased; its pseudo-inverse is that of one axis applied to rows and columns.
void resample_patches(std::span<const float> source, int64_t from, std::span<float> target, int64_t to);

}  // namespace vitrail
