// Turns an image into a model's input, following PreprocessConfig: resize, centre crop, normalise. Knows no
// model and no file format.
//
// kStretch resizes to height x width, whatever the shape of the image; kStretchCrop to resize_sides(),
// which it then crops. kShorterSide keeps the shape:
// - resize_sides() equal (torchvision's Resize): the shorter side becomes `resize`, the longer int(resize *
//   long / short);
// - otherwise (timm's ResizeKeepRatio): the image becomes the smallest of its shape that covers them, both
//   sides rounded.
// - TensorFlow's resamplers (big_vision's resize_small): both sides are rounded from float32, any crop.
// kLongerSide (timm's border) keeps the shape, too: the image becomes the largest of it within
// resize_sides(), both sides rounded. kNone leaves it as it is. Then the centre crop, an odd margin split as
// `odd_margin` says. An image smaller than the crop gets black margins, with kLongerSide such of the mean's
// 8-bit level. What is padded holds the mean itself: zeros.
//
// The modes of transformers' processors, before a centre crop or in its place:
// - kShorterMost, like kShorterSide: the height of resize_sides() is the shorter side's, their width the most
//   that the longer side becomes;
// - kWithin, like kLongerSide: the largest of the image's shape within resize_sides(), both rounded down,
//   black margins;
// - kCropStretch (Perceiver) stretches the centre of the image, of whose shorter side it takes the shares
// that
//   the crop has of resize_sides();
// - kShorterDown (BridgeTower): the shorter side becomes `resize`, the longer at most 1333/800 of it, both
//   rounded down to multiples of `resize_longer`;
// - kShorterUp (TextNet), like kShorterSide: both sides rounded up to multiples of `resize_longer`;
// - kSquare (Janus): the longer side becomes `resize`, the shorter at least `resize_longer`, in the middle of
//   the mean's 8-bit level, rounded down;
// - kCorner (SAM): the longer side becomes `resize`, at the top left; the rest holds the mean itself;
// - kThumbnail (Donut): the shorter side becomes the crop's, then the image is shrunk to fit, between black
//   margins.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "image/image.h"
#include "image/preprocess_config.h"

namespace vitrail {

// Throws Error(kConfig) for what preprocess() cannot do.
void require_possible(const PreprocessConfig& config);

// Fills `target`, channels x height x width, planar. Its size determines the model's channels: 3, or 1, for
// which colours become luma (Pillow's convert("L")) before anything else.
void preprocess(const Image& image, const PreprocessConfig& config, std::span<float> target);

// The normalised value of each 8-bit level of a channel, for loaders to keep.
using LevelTable = std::array<float, 256>;
std::vector<LevelTable> level_tables(const PreprocessConfig& config, int64_t channels);

// The 8-bit level nearest to a channel's mean, with which timm fills borders.
uint8_t mean_level(const PreprocessConfig& config, size_t channel);

// Computes Pillow's convert("L") of an RGB image.
Image to_luma(const Image& image);

// Returns what the model sees, before normalisation, in the image's own channels: for overlays.
Image crop_for_display(const Image& whole, const PreprocessConfig& config);

}  // namespace vitrail
