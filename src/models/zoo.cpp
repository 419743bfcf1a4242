#include "models/zoo.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "models/zoo_rows.h"

namespace vitrail {

namespace {

using namespace zoo_rows;

VitConfig config_of(const Row& row) {
  const auto has = [&](Trait trait) { return (row.traits & trait) != 0; };
  VitConfig c;
  c.arch = row.name;
  c.image_height = c.image_width = row.image;
  c.patch = row.patch;
  c.width = row.size.width;
  c.depth = row.size.depth;
  c.heads = row.size.heads;
  c.mlp = row.size.mlp;
  c.distilled = has(kDistilled);
  c.class_token = !has(kGap) && !has(kMap);
  c.pool = has(kGap) || has(kMeanOfPatches) ? Pool::kMean : has(kMap) ? Pool::kMap : Pool::kCls;
  c.pool_prefix = has(kPoolAll);
  if (has(kNoHead)) c.classes = 0;
  c.norm_place = has(kNoLastNorm) ? NormPlace::kNone
                 : has(kFcNorm)   ? NormPlace::kAfterPool
                                  : NormPlace::kBeforePool;
  if (has(kRms)) c.norm = NormKind::kRms;
  if (has(kQuick)) c.activation = ActKind::kQuickGelu;
  if (has(kClipTower)) {
    c.pre_norm = true;
    c.norm_eps = 1e-5;
  }
  c.layer_scale = has(kLayerScale);
  c.qkv_bias = !has(kNoQkvBias);
  c.registers = has(kReg1) ? 1 : has(kReg4) ? 4 : 0;
  c.pos_for_prefix = !has(kNoPosForClass) && (c.registers == 0 || has(kRegPos));
  if (has(kBigVision) || has(kTanh)) c.gelu = GeluKind::kTanh;
  if (has(kBigVision)) c.pos_resize = PosResize::kJax;
  if (has(kFlexi)) c.pos_resize = PosResize::kFlexivit;
  return c;
}

PreprocessConfig preprocess_of(const Row& row) {
  PreprocessConfig p;
  p.height = p.width = row.image;
  p.crop_pct = row.crop;
  p.resize = side_before_crop(row.image, row.crop);
  if (row.traits & kSquash) p.mode = ResizeMode::kStretchCrop;
  if (row.traits & kBilinear) p.interpolation = Interpolation::kBilinear;
  if (row.traits & kBigVision) p.resampler = Resampler::kTfArea;
  if (row.norm == kImageNet) {
    p.mean = {0.485, 0.456, 0.406};
    p.std = {0.229, 0.224, 0.225};
  } else if (row.norm == kClip) {
    p.mean = {0.48145466, 0.4578275, 0.40821073};
    p.std = {0.26862954, 0.26130258, 0.27577711};
  } else if (row.norm == kUnit) {
    p.mean = {0, 0, 0};
    p.std = {1, 1, 1};
  }
  return p;
}

// timm's name of today for one that it has given up; its configs may still hold the old one.
std::string todays_name(std::string_view name) {
  std::string bare(name.substr(0, name.find('.')));
  for (const std::string_view ending : {"_in21k", "_in21ft1k", "_dino", "_sam"})
    if (bare.ends_with(ending)) return bare.substr(0, bare.size() - ending.size());
  const std::string laion = "_224_clip_laion2b";
  if (bare.ends_with(laion)) return bare.substr(0, bare.size() - laion.size()) + "_clip_224";
  return bare;
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> list;
    for (const Row& row : kRows) list.push_back({config_of(row), preprocess_of(row)});
    return list;
  }();
  return entries;
}

bool is_architecture(std::string_view name) {
  const std::string bare = todays_name(name);
  return std::any_of(zoo().begin(), zoo().end(), [&](const ZooEntry& e) { return e.config.arch == bare; });
}

const ZooEntry& find_architecture(std::string_view name) {
  const std::string bare = todays_name(name);
  for (const ZooEntry& entry : zoo())
    if (entry.config.arch == bare) return entry;
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) names.push_back(entry.config.arch);
  const std::string near = nearest_name(bare, names);
  throw Error(ErrorKind::kUsage,
              strf("unknown architecture '%.*s'", static_cast<int>(name.size()), name.data()),
              (near.empty() ? "" : "did you mean " + near + "? ") +
                  "vitrail inspect --architectures lists all of them");
}

}  // namespace vitrail
