// The table of known architectures: a row each, of what sets it apart from the plain ViT. It is private to
// zoo.cpp, which makes configs of rows, and knows neither of them.
#pragma once

#include <cstdint>

namespace vitrail::zoo_rows {

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
constexpr Size kXsmall10 = {256, 10, 4, 1024};
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
  kClipTower = 1048576,      // a norm before the blocks, epsilon 1e-5
  kQuick = 2097152,          // quick GELU
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
    {"vit_xsmall_patch16_clip_224", kXsmall10, 16, 224, kClipTower, 0.9, kClip},
    {"vit_medium_patch16_clip_224", kMedium, 16, 224, kClipTower, 0.9, kClip},
    {"vit_medium_patch32_clip_224", kMedium, 32, 224, kClipTower, 0.9, kClip},
    {"vit_betwixt_patch32_clip_224", kBetwixt, 32, 224, kClipTower, 0.9, kClip},
    {"vit_base_patch16_clip_224", kBase, 16, 224, kClipTower, 0.95, kClip},
    {"vit_base_patch16_clip_384", kBase, 16, 384, kClipTower | kSquash, 1.0, kClip},
    {"vit_base_patch16_plus_clip_240", kBasePlus, 16, 240, kClipTower, 1.0, kClip},
    {"vit_base_patch32_clip_224", kBase, 32, 224, kClipTower, 0.9, kClip},
    {"vit_base_patch32_clip_256", kBase, 32, 256, kClipTower, 1.0, kClip},
    {"vit_base_patch32_clip_384", kBase, 32, 384, kClipTower, 1.0, kClip},
    {"vit_base_patch32_clip_448", kBase, 32, 448, kClipTower, 1.0, kClip},
    {"vit_large_patch14_clip_224", kLarge, 14, 224, kClipTower, 1.0, kHalf},
    {"vit_large_patch14_clip_336", kLarge, 14, 336, kClipTower | kSquash, 1.0, kHalf},
    {"vit_huge_patch14_clip_224", kHuge, 14, 224, kClipTower, 1.0, kClip},
    {"vit_huge_patch14_clip_336", kHuge, 14, 336, kClipTower | kSquash, 1.0, kClip},
    {"vit_huge_patch14_clip_378", kHuge, 14, 378, kClipTower, 1.0, kClip},
    {"vit_giant_patch14_clip_224", kGiant, 14, 224, kClipTower, 1.0, kClip},
    {"vit_gigantic_patch14_clip_224", kGigantic, 14, 224, kClipTower, 1.0, kClip},
    {"vit_gigantic_patch14_clip_378", kGigantic, 14, 378, kClipTower | kSquash, 1.0, kClip},
    {"vit_base_patch16_clip_quickgelu_224", kBase, 16, 224, kClipTower | kQuick, 1.0, kClip},
    {"vit_base_patch32_clip_quickgelu_224", kBase, 32, 224, kClipTower | kQuick, 0.9, kClip},
    {"vit_large_patch14_clip_quickgelu_224", kLarge, 14, 224, kClipTower | kQuick, 1.0, kClip},
    {"vit_large_patch14_clip_quickgelu_336", kLarge, 14, 336, kClipTower | kQuick, 1.0, kClip},
    {"vit_huge_patch14_clip_quickgelu_224", kHuge, 14, 224, kClipTower | kQuick, 1.0, kClip},
    {"vit_huge_patch14_clip_quickgelu_378", kHuge, 14, 378, kClipTower | kQuick, 1.0, kClip},
    {"vit_gigantic_patch14_clip_quickgelu_224", kGigantic, 14, 224, kClipTower | kQuick, 1.0, kClip},
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

}  // namespace vitrail::zoo_rows
