#include "data/augment/mix.h"

#include <algorithm>
#include <cmath>

#include "data/augment/windows.h"

namespace vitrail {
namespace {

struct Span {
  int64_t begin, length;
};

// Returns `cut` of `side` pixels about a centre anywhere in it; the part outside is dropped.
Span cut_span(int64_t side, double share, Draw& draw) {
  const auto cut = static_cast<int64_t>(static_cast<double>(side) * share);
  const int64_t centre = draw.integer(0, side - 1);
  const int64_t begin = std::clamp<int64_t>(centre - cut / 2, 0, side);
  return {begin, std::clamp<int64_t>(centre + (cut + 1) / 2, 0, side) - begin};
}

void blend(std::span<float> a, std::span<float> b, float lambda, float rest) {
  for (size_t i = 0; i < a.size(); ++i) {
    const float first = a[i], second = b[i];
    a[i] = first * lambda + second * rest;
    b[i] = second * lambda + first * rest;
  }
}

void swap_box(std::span<float> a, std::span<float> b, Size size, const Window& box) {
  const int64_t rows = static_cast<int64_t>(a.size()) / size.width;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = row % size.height;
    if (y < box.top || y >= box.top + box.height) continue;
    float* from = a.data() + row * size.width + box.left;
    std::swap_ranges(from, from + box.width, b.data() + row * size.width + box.left);
  }
}

void note_mix(const Mix& mix, float lambda, float rest, int64_t partner, ImageRecipe& recipe) {
  recipe.mix = mix.cut ? ImageMix::kCut : ImageMix::kBlend;
  recipe.partner = static_cast<int32_t>(partner);
  recipe.lambda = lambda;
  recipe.rest = rest;
  recipe.cut = box_of(mix.box);
}

}  // namespace

Mix draw_mix(const AugmentConfig& config, Size size, Draw& draw) {
  Mix mix;
  if (!draw.chance(config.mix_prob)) return mix;
  mix.cut = config.cutmix > 0 && (config.mixup == 0 || draw.chance(config.mix_switch));
  mix.lambda = draw.beta(mix.cut ? config.cutmix : config.mixup);
  if (!mix.cut) return mix;
  const double share = std::sqrt(1 - mix.lambda);
  const Span rows = cut_span(size.height, share, draw), columns = cut_span(size.width, share, draw);
  mix.box = {rows.begin, columns.begin, rows.length, columns.length};
  mix.lambda =
      1 - static_cast<double>(rows.length * columns.length) / static_cast<double>(size.height * size.width);
  return mix;
}

void mix_samples(const Mix& mix, const MixGroup& group) {
  if (mix.lambda == 1) return;
  const size_t count = group.weights.size();
  const auto lambda = static_cast<float>(mix.lambda), rest = static_cast<float>(1 - mix.lambda);
  const auto row = [&](std::span<float> all, size_t i) {
    return all.subspan(i * (all.size() / count), all.size() / count);
  };
  for (size_t i = 0; i < count / 2; ++i) {
    const size_t j = count - 1 - i;
    if (group.weights[i] == 0 || group.weights[j] == 0) continue;
    if (!group.recipes.empty()) {
      note_mix(mix, lambda, rest, group.first + static_cast<int64_t>(j), group.recipes[i]);
      note_mix(mix, lambda, rest, group.first + static_cast<int64_t>(i), group.recipes[j]);
    } else if (mix.cut) {
      swap_box(row(group.images, i), row(group.images, j), group.size, mix.box);
    } else {
      blend(row(group.images, i), row(group.images, j), lambda, rest);
    }
    blend(row(group.targets, i), row(group.targets, j), lambda, rest);
    blend(row(group.weights, i), row(group.weights, j), lambda, rest);
  }
}

}  // namespace vitrail
