#include "io/dialects/refusals.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

struct Sign {
  const char* part;  // of a tensor's name
  const char* family;
};
// The first that fits speaks, so the more telling stand first.
constexpr Sign kSigns[] = {
    {"conv_root/", "a ResNet-ViT hybrid"},
    {"gn_root/", "a ResNet-ViT hybrid"},
    {"block1/unit", "a ResNet-ViT hybrid"},
    {"patch_embed.backbone.", "a ResNet-ViT hybrid"},
    {"params/txt/", "a SigLIP or LiT model with a text tower"},
    {"params/img/head/kernel_txt", "a SigLIP model"},
    {"text_projection", "a CLIP model with a text tower"},
    {"text_model.", "a CLIP or SigLIP model with a text tower"},
    {"logit_scale", "a CLIP or SigLIP model"},
    {"visual.class_embedding", "a CLIP image tower"},
    {"visual.trunk.", "a CLIP or SigLIP image tower"},
    {"pre_layrnorm.", "a CLIP image tower"},
    {"norm_pre.", "a CLIP image tower (layernorm before the blocks)"},
    {"vision_model.", "a CLIP or SigLIP image tower"},
    {"mlp.w12.", "a ViT with SwiGLU"},
    {"mlp.weights_in.", "a ViT with SwiGLU"},
    {"mlp.fc1_g.", "a ViT with SwiGLU"},
    {"mlp.w1.", "a ViT with SwiGLU"},
    {"rope", "a ViT with rotary positions (RoPE)"},
    {"rotary", "a ViT with rotary positions (RoPE)"},
    {"layers.0.blocks.", "a Swin transformer"},
    {"relative_position_bias", "BEiT (relative position bias)"},
    {"relative_position_index", "BEiT (relative position bias)"},
    {"attn.q_bias", "BEiT or EVA"},
    {"decoder_blocks.", "a masked autoencoder's pretraining file"},
    {"decoder_embed.", "a masked autoencoder's pretraining file"},
    {"layer_scale1.lambda1", "DINOv2"},
    {"mask_token", "DINOv2 or another masked-image model"},
};

constexpr Sign kModelNames[] = {
    {"dinov2", "DINOv2"},
    {"dinov3", "DINOv3"},
    {"siglip", "SigLIP"},
    {"clip", "CLIP"},
    {"swin", "a Swin transformer"},
    {"beit", "BEiT"},
    {"eva0", "EVA"},
    {"eva_", "EVA"},
    {"rope", "a ViT with rotary positions (RoPE)"},
    {"hybrid", "a ResNet-ViT hybrid"},
    {"_r26_", "a ResNet-ViT hybrid"},
    {"_r50_", "a ResNet-ViT hybrid"},
    {"tips", "TIPS"},
    {"vit_mae", "a masked autoencoder"},
    {"vit_msn", "ViT-MSN"},
};

[[noreturn]] void refuse(const Sign& sign, const std::string& evidence) {
  throw Error(ErrorKind::kData,
              strf("this is %s (%s); only plain ViTs are supported", sign.family, evidence.c_str()),
              "a ViT or DeiT from timm, Hugging Face, torchvision or google");
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// timm's DINOv2 files hold nothing but plain names: LayerScale, no head, a 37 x 37 grid of 14-pixel patches.
bool is_timm_dinov2(const TensorSource& source) {
  const auto scale = source.find("blocks.0.ls1.gamma"), pos = source.find("pos_embed");
  if (!scale || !pos || source.find("head.weight")) return false;
  const auto& shape = source.tensors()[*pos].shape;
  return shape.size() == 3 && (shape[1] == 37 * 37 || shape[1] == 37 * 37 + 1);
}

}  // namespace

void refuse_other_families(const TensorSource& source) {
  for (const Sign& sign : kSigns)
    for (const TensorInfo& tensor : source.tensors())
      if (contains(tensor.name, sign.part)) refuse(sign, "it holds " + quoted(tensor.name));
  if (is_timm_dinov2(source)) refuse({"", "DINOv2"}, "LayerScale, no head, 37 x 37 positions");
}

void refuse_other_families(const std::string& model_name) {
  std::string lower = model_name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Sign& sign : kModelNames)
    if (contains(lower, sign.part)) refuse(sign, "named " + quoted(model_name));
}

}  // namespace vitrail
