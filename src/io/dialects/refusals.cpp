// Refuses models of other families by name: by their tensors, or by what their config calls them.
#include "io/dialects/find_dialect.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "models/zoo.h"

namespace vitrail {

namespace {

struct Sign {
  const char* part;  // of a tensor's or a model's name
  const char* family;
  const char* except = nullptr;  // part of names that do not indicate it
};
// The first sign that matches decides, so the more specific ones come first.
constexpr Sign kSigns[] = {
    {"patch_embed.backbone.stem.conv1.", "ViTamin"},
    {"attn_block.", "MaxViT"},
    {"window_attention.", "MaxViT"},
    {"layers.0.blocks.", "a Swin transformer"},
    {"features.1.0.attn.", "a Swin transformer"},
    {"blocks_token_only.", "CaiT"},
    {".attn.rel_pos_h", "a SAM or ViTDet image encoder (relative positions)"},
    {".attn.rel_pos.", "a ViT with relative positions"},
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
    {"vision_model.", "a CLIP or SigLIP image tower"},
    {"mlp.w12.", "a ViT with SwiGLU"},
    {"mlp.weights_in.", "a ViT with SwiGLU"},
    {"mlp.fc1_g.", "a ViT with SwiGLU"},
    {"mlp.w1.", "a ViT with SwiGLU"},
    {"rope", "a ViT with rotary positions (RoPE)"},
    {"rotary", "a ViT with rotary positions (RoPE)"},
    {"relative_position_bias", "BEiT (relative position bias)"},
    {"relative_position_index", "BEiT (relative position bias)"},
    {"attn.q_bias", "BEiT or EVA"},
    {"decoder_blocks.", "a masked autoencoder's pretraining file"},
    {"decoder_embed.", "a masked autoencoder's pretraining file"},
    {"layer_scale1.lambda1", "DINOv2"},
    {"mask_token", "DINOv2 or another masked-image model", "embeddings.mask_token"},
};

// Parts of timm's architecture names and of transformers' model types and classes, in lower case without '_'
// and
// '-'. What is not listed is refused under its own name.
constexpr Sign kModelNames[] = {
    {"dinov3", "DINOv3"},
    {"dinov2", "DINOv2"},
    {"vitamin", "ViTamin"},
    {"siglip", "SigLIP"},
    {"clip", "CLIP"},
    {"swinv2", "a Swin transformer, version 2"},
    {"swin", "a Swin transformer"},
    {"maxvit", "MaxViT"},
    {"maxxvit", "MaxxViT"},
    {"coatnet", "CoAtNet"},
    {"beitv2", "BEiT, version 2"},
    {"beit3", "BEiT, version 3"},
    {"beit", "BEiT"},
    {"data2vec", "data2vec"},
    {"eva02", "EVA-02"},
    {"eva", "EVA"},
    {"rope", "a ViT with rotary positions (RoPE)"},
    {"hybrid", "a ResNet-ViT hybrid"},
    {"resnet26", "a ResNet-ViT hybrid"},
    {"resnet50", "a ResNet-ViT hybrid"},
    {"vittinyr", "a ResNet-ViT hybrid"},
    {"vitsmallr", "a ResNet-ViT hybrid"},
    {"vitbaser", "a ResNet-ViT hybrid"},
    {"vitlarger", "a ResNet-ViT hybrid"},
    {"tips", "TIPS"},
    {"vitmae", "a masked autoencoder"},
    {"maskedimage", "a ViT for masked-image pretraining, without a classifier"},
    {"videomae", "VideoMAE"},
    {"dpt", "DPT (dense prediction)"},
    {"yolos", "YOLOS (detection)"},
    {"vitdet", "ViTDet (detection)"},
    {"vitpose", "ViTPose"},
    {"segformer", "SegFormer"},
    {"samvit", "a SAM image encoder"},
    {"vivit", "ViViT (video)"},
    {"aimv2", "AIMv2"},
    {"naflexvit", "NaFlexViT"},
    {"vitpe", "a Perception Encoder"},
};

[[noreturn]] void refuse(const Sign& sign, const std::string& evidence) {
  throw Error(ErrorKind::kData,
              strf("this is %s (%s); only plain ViTs are supported", sign.family, evidence.c_str()),
              "a ViT or DeiT from timm, Hugging Face, torchvision or google");
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string bare(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (c != '_' && c != '-') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

[[noreturn]] void refuse_named(const std::string& name, const char* key) {
  const std::string evidence = strf("config.json's %s is %s", key, quoted(name).c_str());
  for (const Sign& sign : kModelNames)
    if (contains(bare(name), sign.part)) refuse(sign, evidence);
  const std::string itself = "a model called " + quoted(name);
  refuse({"", itself.c_str()}, evidence);
}

// Model types of transformers that are plain ViTs, or that hold one of timm's models.
constexpr const char* kPlainTypes[] = {"vit", "deit", "vit_msn", "ijepa", "timm_wrapper"};

}  // namespace

void refuse_other_families(const TensorSource& source) {
  for (const Sign& sign : kSigns)
    for (const TensorInfo& tensor : source.tensors())
      if (contains(tensor.name, sign.part) && !(sign.except && contains(tensor.name, sign.except)))
        refuse(sign, "it holds " + quoted(tensor.name));
}

void refuse_other_families(const Json& config) {
  const auto text = [](const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const std::string type = text(config, "model_type");
  std::string architecture = text(config, "architecture");
  if (const auto cfg = config.find("pretrained_cfg");
      architecture.empty() && cfg != config.end() && cfg->is_object())
    architecture = text(*cfg, "architecture");
  if (!type.empty() &&
      std::find(std::begin(kPlainTypes), std::end(kPlainTypes), type) == std::end(kPlainTypes))
    refuse_named(type, "model_type");
  if (const auto classes = config.find("architectures"); classes != config.end() && classes->is_array())
    for (const Json& name : *classes)
      if (name.is_string() && contains(bare(name), "maskedimage")) refuse_named(name, "architectures");
  if (!architecture.empty() && !is_architecture(architecture)) refuse_named(architecture, "architecture");
}

}  // namespace vitrail
