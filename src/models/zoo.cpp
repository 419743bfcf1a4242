#include "models/zoo.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

struct Size {
  int64_t width, depth, heads, mlp;
};
constexpr Size kBase = {768, 12, 12, 3072};
constexpr Size kBase16Heads = {768, 12, 16, 3072};
constexpr Size kBasePlus = {896, 12, 14, 3584};
constexpr Size kBetwixt = {640, 12, 10, 2560};
constexpr Size kGiant = {1408, 40, 16, 6144};
constexpr Size kGigantic = {1664, 48, 16, 8192};
constexpr Size kHuge = {1280, 32, 16, 5120};
constexpr Size kLarge = {1024, 24, 16, 4096};
constexpr Size kLittle = {320, 14, 5, 1792};
constexpr Size kMedium = {512, 12, 8, 2048};
constexpr Size kMediumDeep = {512, 20, 8, 2048};
constexpr Size kSmall = {384, 12, 6, 1536};
constexpr Size kSmallDeep = {384, 36, 6, 1536};
constexpr Size kTiny = {192, 12, 3, 768};
constexpr Size kWee = {256, 14, 4, 1280};
constexpr Size kMu = {32, 1, 2, 128};
constexpr Size kM = {512, 12, 8, 2048};
constexpr Size kTest = {64, 6, 2, 192};
constexpr Size kTest2 = {64, 8, 2, 192};
constexpr Size kTest3 = {96, 9, 3, 192};
constexpr Size kTest4 = {96, 9, 3, 288};
constexpr Size kSo150m = {896, 18, 14, 2304};
constexpr Size kSo150m2 = {832, 21, 13, 2176};
constexpr Size kSo400m = {1152, 27, 16, 4304};
constexpr Size kGiantOpt = {1536, 40, 16, 6144};
constexpr Size kGiganticOpt = {1536, 48, 16, 8192};
constexpr Size kE = {1792, 56, 16, 15360};

// The differences of a row from the plain ViT: class token, learned positions with a class row, erf GELU.
enum Trait : unsigned {
  kDistilled = 1,
  kGap = 2,
  kFcNorm = 4,
  kNoPosForClass = 8,
  kLayerScale = 16,
  kNoQkvBias = 32,
  kReg1 = 64,
  kReg4 = 128,
  kBilinear = 256,
  kSquash = 512,  // stretched before the crop
  kBigVision = 1024,
  kTanh = 2048,
  kMap = 4096,
  kNoHead = 8192,
  kRegPos = 16384,         // registers have positions
  kMeanOfPatches = 32768,  // the class token exists and is not pooled
  kPoolAll = 65536,        // registers are pooled too
  kFlexi = 131072,         // positions resized by FlexiViT's rule
  kRms = 262144,           // RMSNorm
  kNoLastNorm = 524288,
  kSigLip = kMap | kNoHead,  // image towers alone
  kSigLipGap = kGap | kNoHead
};
enum Norm { kHalf, kImageNet, kUnit, kClip };

struct Row {
  const char* name;
  Size size;
  int64_t patch, image;
  unsigned traits;
  double crop;  // shorter side = floor(image / crop)
  Norm norm;
};

// timm's names with timm's default preprocessing, then big_vision's sizes (GAP, tanh GELU) under Vitrail's
// names.
constexpr Row kRows[] = {
    {"vit_base_patch8_224", kBase, 8, 224, 0, 0.9, kHalf},
    {"vit_base_patch16_224", kBase, 16, 224, 0, 0.9, kHalf},
    {"vit_base_patch16_224_miil", kBase, 16, 224, kNoQkvBias | kBilinear, 0.875, kUnit},
    {"vit_base_patch16_384", kBase, 16, 384, 0, 1.0, kHalf},
    {"vit_base_patch16_gap_224", kBase16Heads, 16, 224, kGap, 0.9, kHalf},
    {"vit_base_patch16_plus_240", kBasePlus, 16, 240, kLayerScale, 0.95, kHalf},
    {"vit_base_patch16_reg4_gap_256", kBase, 16, 256, kGap | kFcNorm | kReg4, 0.9, kHalf},
    {"vit_base_patch32_224", kBase, 32, 224, 0, 0.9, kHalf},
    {"vit_base_patch32_384", kBase, 32, 384, 0, 1.0, kHalf},
    {"vit_base_patch32_plus_256", kBasePlus, 32, 256, kLayerScale, 0.95, kHalf},
    {"vit_betwixt_patch16_gap_256", kBetwixt, 16, 256, kGap | kLayerScale | kNoQkvBias, 0.95, kHalf},
    {"vit_betwixt_patch16_reg1_gap_256", kBetwixt, 16, 256, kGap | kFcNorm | kLayerScale | kReg1, 0.95,
     kHalf},
    {"vit_betwixt_patch16_reg4_gap_256", kBetwixt, 16, 256, kGap | kFcNorm | kLayerScale | kReg4, 0.95,
     kHalf},
    {"vit_betwixt_patch16_reg4_gap_384", kBetwixt, 16, 384, kGap | kFcNorm | kLayerScale | kReg4, 1.0, kHalf},
    {"vit_giant_patch14_224", kGiant, 14, 224, 0, 0.9, kHalf},
    {"vit_giant_patch16_gap_224", kGiant, 16, 224, kGap, 0.9, kImageNet},
    {"vit_gigantic_patch14_224", kGigantic, 14, 224, 0, 0.9, kHalf},
    {"vit_huge_patch14_224", kHuge, 14, 224, 0, 0.9, kHalf},
    {"vit_huge_patch14_gap_224", kHuge, 14, 224, kGap, 0.9, kImageNet},
    {"vit_huge_patch16_gap_448", kHuge, 16, 448, kGap, 1.0, kImageNet},
    {"vit_large_patch14_224", kLarge, 14, 224, 0, 0.9, kHalf},
    {"vit_large_patch16_224", kLarge, 16, 224, 0, 0.9, kHalf},
    {"vit_large_patch16_384", kLarge, 16, 384, 0, 1.0, kHalf},
    {"vit_large_patch32_224", kLarge, 32, 224, 0, 0.9, kHalf},
    {"vit_large_patch32_384", kLarge, 32, 384, 0, 1.0, kHalf},
    {"vit_little_patch16_reg1_gap_256", kLittle, 16, 256, kGap | kFcNorm | kLayerScale | kReg1, 0.95, kHalf},
    {"vit_little_patch16_reg4_gap_256", kLittle, 16, 256, kGap | kFcNorm | kLayerScale | kReg4, 0.95, kHalf},
    {"vit_medium_patch16_gap_240", kMedium, 16, 240, kGap | kLayerScale | kNoQkvBias, 0.95, kHalf},
    {"vit_medium_patch16_gap_256", kMedium, 16, 256, kGap | kLayerScale | kNoQkvBias, 0.95, kHalf},
    {"vit_medium_patch16_gap_384", kMedium, 16, 384, kGap | kLayerScale | kNoQkvBias | kSquash, 0.95, kHalf},
    {"vit_medium_patch16_reg1_gap_256", kMedium, 16, 256, kGap | kFcNorm | kLayerScale | kReg1, 0.95, kHalf},
    {"vit_medium_patch16_reg4_gap_256", kMedium, 16, 256, kGap | kFcNorm | kLayerScale | kReg4, 0.95, kHalf},
    {"vit_mediumd_patch16_reg4_gap_256", kMediumDeep, 16, 256, kGap | kFcNorm | kLayerScale | kReg4, 0.95,
     kHalf},
    {"vit_mediumd_patch16_reg4_gap_384", kMediumDeep, 16, 384, kGap | kFcNorm | kLayerScale | kReg4, 1.0,
     kHalf},
    {"vit_small_patch8_224", kSmall, 8, 224, 0, 0.9, kImageNet},
    {"vit_small_patch16_36x1_224", kSmallDeep, 16, 224, kLayerScale, 0.9, kHalf},
    {"vit_small_patch16_224", kSmall, 16, 224, 0, 0.9, kHalf},
    {"vit_small_patch16_384", kSmall, 16, 384, 0, 1.0, kHalf},
    {"vit_small_patch32_224", kSmall, 32, 224, 0, 0.9, kHalf},
    {"vit_small_patch32_384", kSmall, 32, 384, 0, 1.0, kHalf},
    {"vit_tiny_patch16_224", kTiny, 16, 224, 0, 0.9, kHalf},
    {"vit_tiny_patch16_384", kTiny, 16, 384, 0, 1.0, kHalf},
    {"vit_wee_patch16_reg1_gap_256", kWee, 16, 256, kGap | kFcNorm | kLayerScale | kReg1, 0.95, kHalf},
    {"vit_so150m_patch16_reg4_gap_256", kSo150m, 16, 256, kGap | kReg4 | kRegPos, 0.95, kHalf},
    {"vit_so150m_patch16_reg4_gap_384", kSo150m, 16, 384, kGap | kReg4 | kRegPos, 1.0, kHalf},
    {"vit_so150m_patch16_reg4_map_256", kSo150m, 16, 256, kMap | kReg4 | kRegPos, 0.9, kHalf},
    {"vit_so150m2_patch16_reg1_gap_256", kSo150m2, 16, 256,
     kGap | kFcNorm | kLayerScale | kNoQkvBias | kReg1 | kRegPos, 1.0, kHalf},
    {"vit_so150m2_patch16_reg1_gap_384", kSo150m2, 16, 384,
     kGap | kFcNorm | kLayerScale | kNoQkvBias | kReg1 | kRegPos, 1.0, kHalf},
    {"vit_so150m2_patch16_reg1_gap_448", kSo150m2, 16, 448,
     kGap | kFcNorm | kLayerScale | kNoQkvBias | kReg1 | kRegPos | kSquash, 1.0, kHalf},
    {"vit_small_patch14_dinov2", kSmall, 14, 518, kLayerScale | kNoHead, 1.0, kImageNet},
    {"vit_base_patch14_dinov2", kBase, 14, 518, kLayerScale | kNoHead, 1.0, kImageNet},
    {"vit_large_patch14_dinov2", kLarge, 14, 518, kLayerScale | kNoHead, 1.0, kImageNet},
    {"vit_small_patch14_reg4_dinov2", kSmall, 14, 518, kLayerScale | kReg4 | kNoHead, 1.0, kImageNet},
    {"vit_base_patch14_reg4_dinov2", kBase, 14, 518, kLayerScale | kReg4 | kNoHead, 1.0, kImageNet},
    {"vit_large_patch14_reg4_dinov2", kLarge, 14, 518, kLayerScale | kReg4 | kNoHead, 1.0, kImageNet},
    {"vit_base_patch14_reg1_tipsv2", kBase, 14, 448, kLayerScale | kReg1 | kNoHead, 1.0, kUnit},
    {"vit_large_patch14_reg1_tipsv2", kLarge, 14, 448, kLayerScale | kReg1 | kNoHead, 1.0, kUnit},
    {"vit_so400m_patch14_reg1_tipsv2", kSo400m, 14, 448, kLayerScale | kReg1 | kNoHead, 1.0, kUnit},
    {"vit_intern300m_patch14_448", kLarge, 14, 448, kLayerScale | kNoHead | kNoLastNorm, 1.0, kImageNet},
    {"flexivit_small", kSmall, 16, 240, kNoPosForClass | kFlexi, 0.95, kHalf},
    {"flexivit_base", kBase, 16, 240, kNoPosForClass | kFlexi, 0.95, kHalf},
    {"flexivit_large", kLarge, 16, 240, kNoPosForClass | kFlexi, 0.95, kHalf},
    {"eva_large_patch14_196", kLarge, 14, 196, kMeanOfPatches | kFcNorm, 1.0, kClip},
    {"eva_large_patch14_336", kLarge, 14, 336, kMeanOfPatches | kFcNorm | kSquash, 1.0, kClip},
    {"test_vit", kTest, 16, 160, 0, 0.95, kHalf},
    {"test_vit2", kTest2, 16, 160, kGap | kFcNorm | kLayerScale | kReg1 | kRegPos, 0.95, kHalf},
    {"test_vit3", kTest3, 16, 160, kMap | kLayerScale | kReg1 | kRegPos | kPoolAll, 0.95, kHalf},
    {"test_vit4", kTest4, 16, 160, kGap | kFcNorm | kLayerScale | kReg1 | kRegPos | kRms, 0.95, kHalf},
    {"deit_base_distilled_patch16_224", kBase, 16, 224, kDistilled, 0.9, kImageNet},
    {"deit_base_distilled_patch16_384", kBase, 16, 384, kDistilled, 1.0, kImageNet},
    {"deit_base_patch16_224", kBase, 16, 224, 0, 0.9, kImageNet},
    {"deit_base_patch16_384", kBase, 16, 384, 0, 1.0, kImageNet},
    {"deit_small_distilled_patch16_224", kSmall, 16, 224, kDistilled, 0.9, kImageNet},
    {"deit_small_patch16_224", kSmall, 16, 224, 0, 0.9, kImageNet},
    {"deit_tiny_distilled_patch16_224", kTiny, 16, 224, kDistilled, 0.9, kImageNet},
    {"deit_tiny_patch16_224", kTiny, 16, 224, 0, 0.9, kImageNet},
    {"deit3_base_patch16_224", kBase, 16, 224, kNoPosForClass | kLayerScale, 0.9, kImageNet},
    {"deit3_base_patch16_384", kBase, 16, 384, kNoPosForClass | kLayerScale, 1.0, kImageNet},
    {"deit3_huge_patch14_224", kHuge, 14, 224, kNoPosForClass | kLayerScale, 0.9, kImageNet},
    {"deit3_large_patch16_224", kLarge, 16, 224, kNoPosForClass | kLayerScale, 0.9, kImageNet},
    {"deit3_large_patch16_384", kLarge, 16, 384, kNoPosForClass | kLayerScale, 1.0, kImageNet},
    {"deit3_medium_patch16_224", kMedium, 16, 224, kNoPosForClass | kLayerScale, 0.9, kImageNet},
    {"deit3_small_patch16_224", kSmall, 16, 224, kNoPosForClass | kLayerScale, 0.9, kImageNet},
    {"deit3_small_patch16_384", kSmall, 16, 384, kNoPosForClass | kLayerScale, 1.0, kImageNet},
    {"vit_base_patch16_siglip_224", kBase, 16, 224, kSigLip, 0.9, kHalf},
    {"vit_base_patch16_siglip_256", kBase, 16, 256, kSigLip, 0.9, kHalf},
    {"vit_base_patch16_siglip_384", kBase, 16, 384, kSigLip, 0.9, kHalf},
    {"vit_base_patch16_siglip_512", kBase, 16, 512, kSigLip, 0.9, kHalf},
    {"vit_base_patch16_siglip_gap_224", kBase, 16, 224, kSigLipGap, 0.9, kHalf},
    {"vit_base_patch16_siglip_gap_256", kBase, 16, 256, kSigLipGap, 0.9, kHalf},
    {"vit_base_patch16_siglip_gap_384", kBase, 16, 384, kSigLipGap, 0.9, kHalf},
    {"vit_base_patch16_siglip_gap_512", kBase, 16, 512, kSigLipGap, 0.9, kHalf},
    {"vit_base_patch32_siglip_256", kBase, 32, 256, kSigLip | kTanh, 0.9, kHalf},
    {"vit_base_patch32_siglip_gap_256", kBase, 32, 256, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_giantopt_patch16_siglip_256", kGiantOpt, 16, 256, kSigLip | kTanh, 0.9, kHalf},
    {"vit_giantopt_patch16_siglip_384", kGiantOpt, 16, 384, kSigLip | kTanh, 0.9, kHalf},
    {"vit_giantopt_patch16_siglip_gap_256", kGiantOpt, 16, 256, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_giantopt_patch16_siglip_gap_384", kGiantOpt, 16, 384, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_large_patch16_siglip_256", kLarge, 16, 256, kSigLip, 0.9, kHalf},
    {"vit_large_patch16_siglip_384", kLarge, 16, 384, kSigLip, 0.9, kHalf},
    {"vit_large_patch16_siglip_gap_256", kLarge, 16, 256, kSigLipGap, 0.9, kHalf},
    {"vit_large_patch16_siglip_gap_384", kLarge, 16, 384, kSigLipGap, 0.9, kHalf},
    {"vit_large_patch16_siglip_512", kLarge, 16, 512, kSigLip | kTanh, 0.9, kHalf},
    {"vit_large_patch16_siglip_gap_512", kLarge, 16, 512, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_224", kSo400m, 14, 224, kSigLip, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_378", kSo400m, 14, 378, kSigLip, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_384", kSo400m, 14, 384, kSigLip, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_gap_224", kSo400m, 14, 224, kSigLipGap, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_gap_378", kSo400m, 14, 378, kSigLipGap, 0.9, kHalf},
    {"vit_so400m_patch14_siglip_gap_384", kSo400m, 14, 384, kSigLipGap, 1.0, kHalf},
    {"vit_so400m_patch14_siglip_gap_448", kSo400m, 14, 448, kSigLipGap, 1.0, kHalf},
    {"vit_so400m_patch14_siglip_gap_896", kSo400m, 14, 896, kSigLipGap, 1.0, kHalf},
    {"vit_so400m_patch16_siglip_256", kSo400m, 16, 256, kSigLip | kTanh, 0.9, kHalf},
    {"vit_so400m_patch16_siglip_384", kSo400m, 16, 384, kSigLip | kTanh, 0.9, kHalf},
    {"vit_so400m_patch16_siglip_512", kSo400m, 16, 512, kSigLip | kTanh, 0.9, kHalf},
    {"vit_so400m_patch16_siglip_gap_256", kSo400m, 16, 256, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_so400m_patch16_siglip_gap_384", kSo400m, 16, 384, kSigLipGap | kTanh, 0.9, kHalf},
    {"vit_so400m_patch16_siglip_gap_512", kSo400m, 16, 512, kSigLipGap | kTanh, 0.9, kHalf},
    {"bigvision_mu_patch16_224", kMu, 16, 224, kGap | kBigVision, 0.875, kHalf},
    {"bigvision_m_patch16_224", kM, 16, 224, kGap | kBigVision, 0.875, kHalf},
    {"bigvision_so400m_patch14_224", kSo400m, 14, 224, kGap | kBigVision, 0.875, kHalf},
    {"bigvision_giantopt_patch14_224", kGiantOpt, 14, 224, kGap | kBigVision, 0.875, kHalf},
    {"bigvision_giganticopt_patch14_224", kGiganticOpt, 14, 224, kGap | kBigVision, 0.875, kHalf},
    {"bigvision_e_patch14_224", kE, 14, 224, kGap | kBigVision, 0.875, kHalf},
};

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
  const std::string_view bare = name.substr(0, name.find('.'));
  return std::any_of(zoo().begin(), zoo().end(), [&](const ZooEntry& e) { return e.config.arch == bare; });
}

const ZooEntry& find_architecture(std::string_view name) {
  const std::string_view bare = name.substr(0, name.find('.'));
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
