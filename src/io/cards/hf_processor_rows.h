// The table of transformers' image processors: a row each, of its defaults for keys that a config leaves out
// and of what it does beside resizing, cropping and normalising as its config says. Private to
// hf_processor.cpp and hf_geometry.cpp.
#pragma once

#include "image/preprocess_config.h"

namespace vitrail::hf_rows {

enum class Ways {
  kPlain,
  kMargin,       // a shortest edge means that of the crop: images are resized to 256/224 of it
  kCropPct,      // to the shortest edge divided by crop_pct
  kConvNext,     // likewise and cropped to that edge, but from 384 on stretched to it
  kTwice,        // include_top: divided by the deviation twice; rescale_offset: 1 less
  kMultiple,     // sides are rounded to ensure_multiple_of, then padded to size_divisor
  kMultipleUp,   // sides are rounded up to multiples of size_divisor
  kShorterUp,    // so are those of a shortest edge
  kShorterDown,  // rounded down; the crop is a shortest edge
  kCropFirst,    // the crop's share of the image is stretched
  kSquare,       // the longer side fits, between borders of the mean
  kGreySquare,   // likewise, as background_color and tile_size say
  kCorner,       // the longer side fits, at the top left
  kThumbnail,    // the shorter side, then the longer one, between black borders
};

// kImageNetOff normalises when told to; kScaled never does, kRaw does not even rescale.
enum class Colours { kHalf, kClip, kImageNet, kImageNetOff, kOne, kScaled, kRaw };
struct Palette {
  double mean[3], std[3];
  double factor = 1.0 / 255;                                       // of pixels, usually
  bool normalises = true, may_normalise = true, may_scale = true;  // usually, and whether keys decide
};
constexpr Palette kPalettes[] = {
    {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
    {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, 1.0 / 255, false},
    {{1, 1, 1}, {1, 1, 1}, 0.0078},
    {{0, 0, 0}, {1, 1, 1}, 1.0 / 255, false, false},
    {{0, 0, 0}, {1, 1, 1}, 1, false, false, false},
};

enum Trait : unsigned {
  kEdge = 1,        // a number as its size is the shorter side
  kCrops = 2,       // unless told not to
  kNeverCrops = 4,  // whatever it is told
  kSidesOnly = 8,   // any size but height and width depends on the image's shape
  kPads = 16,       // to pad_size, where do_pad tells it to
  kPadsAlways = 32,
  kPadsUsually = 64,
  kSwaps = 128,    // the order of channels
  kMaySwap = 256,  // unless do_flip_channel_order says not to
};
constexpr unsigned kDetection = kNeverCrops | kSidesOnly | kPads | kPadsUsually;

struct Row {
  const char* name;  // the class, without "ImageProcessor"
  unsigned traits;
  int64_t size;  // the resized side for a crop of 224; from kShorterUp on as it is
  Interpolation interpolation;
  Colours colours = Colours::kHalf;
  Ways ways = Ways::kPlain;
};
constexpr Interpolation kLinear = Interpolation::kBilinear, kCubic = Interpolation::kBicubic;
constexpr Row kRows[] = {
    {"ViT", kPads, 224, kLinear},
    {"DeiT", kCrops | kPads, 256, kCubic},
    {"CLIP", kEdge | kCrops | kPads, 224, kCubic, Colours::kClip},
    {"Bit", kEdge | kCrops | kPads, 224, kCubic, Colours::kClip},
    {"ViTHybrid", kEdge | kCrops | kPads, 224, kCubic, Colours::kClip},
    {"Siglip", kEdge | kPads, 224, kCubic},
    {"Beit", 0, 224, kCubic},
    {"Blip", kPads, 384, kCubic, Colours::kClip},
    {"ChineseCLIP", kEdge | kCrops | kPads, 224, kCubic, Colours::kClip},
    {"Llava", kEdge | kCrops, 224, kCubic, Colours::kClip},
    {"Flava", kCrops, 224, kCubic, Colours::kClip},
    {"OwlViT", kPads, 768, kCubic, Colours::kClip},
    {"LayoutLMv3", 0, 224, kLinear},
    {"MobileNetV1", kEdge | kCrops | kPads, 256, kLinear},
    {"MobileNetV2", kEdge | kCrops, 256, kLinear},
    {"Pvt", kPads, 224, kCubic, Colours::kImageNet},
    {"Segformer", kNeverCrops, 512, kLinear, Colours::kImageNet},
    {"DPT", kNeverCrops, 384, kCubic, Colours::kHalf, Ways::kMultiple},
    {"PromptDepthAnything", kNeverCrops, 384, kCubic, Colours::kHalf, Ways::kMultiple},
    {"Levit", kEdge | kCrops | kPads, 224, kCubic, Colours::kImageNet, Ways::kMargin},
    {"PoolFormer", kEdge | kCrops | kPads, 224, kCubic, Colours::kImageNet, Ways::kCropPct},
    {"ConvNext", kEdge | kCrops, 384, kCubic, Colours::kHalf, Ways::kConvNext},
    {"EfficientNet", 0, 346, kCubic, Colours::kHalf, Ways::kTwice},
    {"Chameleon", kEdge | kCrops | kPads, 224, Interpolation::kLanczos, Colours::kOne},
    {"PPChart2Table", kPads, 1024, kCubic, Colours::kClip},
    {"ImageGPT", kNeverCrops, 256, kLinear},
    {"SuperPoint", kEdge | kNeverCrops | kSidesOnly, 480, kLinear, Colours::kScaled},
    {"Gemma3", kNeverCrops, 224, kLinear},
    {"GotOcr2", kNeverCrops, 384, kCubic, Colours::kClip},
    {"Ovis2", 0, 384, kCubic, Colours::kClip},
    {"SegGpt", kNeverCrops, 448, kCubic, Colours::kImageNet},
    {"MobileViT", kEdge | kCrops | kSwaps | kMaySwap, 196, kCubic, Colours::kScaled},
    {"LayoutLMv2", kNeverCrops | kSwaps, 224, kLinear, Colours::kRaw},
    {"Detr", kDetection, 800, kLinear, Colours::kImageNet},
    {"ConditionalDetr", kDetection, 800, kLinear, Colours::kImageNet},
    {"DeformableDetr", kDetection, 800, kLinear, Colours::kImageNet},
    {"GroundingDino", kDetection, 800, kLinear, Colours::kImageNet},
    {"Yolos", kDetection, 800, kLinear, Colours::kImageNet},
    {"RTDetr", kNeverCrops | kSidesOnly | kPads, 640, kLinear, Colours::kImageNetOff},
    {"OneFormer", kNeverCrops | kSidesOnly, 800, kLinear, Colours::kImageNet},
    {"Eomt", kNeverCrops | kSidesOnly, 640, kLinear, Colours::kImageNet},
    {"MaskFormer", kNeverCrops | kSidesOnly | kPads | kPadsAlways, 800, kLinear, Colours::kImageNet,
     Ways::kMultipleUp},
    {"Mask2Former", kNeverCrops | kSidesOnly | kPads | kPadsAlways, 800, kLinear, Colours::kImageNet,
     Ways::kMultipleUp},
    {"Vilt", kNeverCrops, 384, kCubic, Colours::kHalf, Ways::kShorterDown},
    {"BridgeTower", kCrops, 288, kCubic, Colours::kClip, Ways::kShorterDown},
    {"TextNet", 0, 640, kLinear, Colours::kImageNet, Ways::kShorterUp},
    {"Perceiver", kCrops, 224, kCubic, Colours::kImageNet, Ways::kCropFirst},
    {"Janus", kNeverCrops, 384, kCubic, Colours::kClip, Ways::kSquare},
    {"DeepseekVL", kNeverCrops, 384, kCubic, Colours::kClip, Ways::kSquare},
    {"DeepseekOcr2", kNeverCrops, 1024, kCubic, Colours::kHalf, Ways::kGreySquare},
    {"Sam", 0, 1024, kLinear, Colours::kImageNet, Ways::kCorner},
    {"Donut", 0, 2560, kLinear, Colours::kHalf, Ways::kThumbnail},
};

// A key by which a processor does more than this program does: it is read while its value, or its default,
// is `wanted`.
struct Beyond {
  const char* processor;
  const char* key;
  bool usual, wanted;
};
constexpr Beyond kBeyond[] = {
    {"DPT", "keep_aspect_ratio", false, false},
    {"PromptDepthAnything", "keep_aspect_ratio", false, false},
    {"ConvNext", "do_center_crop", false, false},
    {"Llava", "do_pad", false, false},
    {"ImageGPT", "do_color_quantize", true, false},
    {"SuperPoint", "do_grayscale", false, false},
    {"Gemma3", "do_pan_and_scan", false, false},
    {"GotOcr2", "crop_to_patches", false, false},
    {"Ovis2", "crop_to_patches", false, false},
    {"Eomt", "do_split_image", false, false},
    {"Eomt", "do_pad", false, false},
    {"Perceiver", "do_resize", true, true},
    {"Janus", "do_resize", true, true},
    {"Janus", "do_pad", true, true},
    {"Janus", "do_rescale", true, true},
    {"Janus", "do_normalize", true, true},
    {"DeepseekVL", "do_resize", true, true},
    {"DeepseekVL", "do_pad", true, true},
    {"DeepseekVL", "do_rescale", true, true},
    {"DeepseekVL", "do_normalize", true, true},
    {"DeepseekOcr2", "do_rescale", true, true},
    {"DeepseekOcr2", "do_normalize", true, true},
    {"Sam", "do_resize", true, true},
    {"Sam", "do_pad", true, true},
    {"Sam", "do_center_crop", false, false},
    {"Donut", "do_resize", true, true},
    {"Donut", "do_thumbnail", true, true},
    {"Donut", "do_pad", true, true},
    {"Donut", "do_align_long_axis", false, false},
    {"Donut", "do_center_crop", false, false},
};

}  // namespace vitrail::hf_rows
