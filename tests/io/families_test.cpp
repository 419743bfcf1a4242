// Every sign by which a model that is no plain ViT is known, and every feature that a dialect has no place
// for.
#include "io/dialects/express.h"
#include "io/dialects/find_dialect.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

TEST(Families, EverySignAmongTheTensorsNamesItsFamily) {
  const std::pair<const char*, const char*> rows[] = {
      {"patch_embed.backbone.stem.conv1.weight", "ViTamin"},
      {"stages.0.attn_block.norm", "MaxViT"},
      {"a.window_attention.b", "MaxViT"},
      {"layers.0.blocks.0.norm", "a Swin transformer"},
      {"features.1.0.attn.qkv", "a Swin transformer"},
      {"blocks_token_only.0.norm", "CaiT"},
      {"blocks.0.attn.rel_pos_h", "a SAM or ViTDet image encoder (relative positions)"},
      {"blocks.0.attn.rel_pos.mlp", "a ViT with relative positions"},
      {"conv_root/kernel", "a ResNet-ViT hybrid"},
      {"gn_root/scale", "a ResNet-ViT hybrid"},
      {"block1/unit1", "a ResNet-ViT hybrid"},
      {"patch_embed.backbone.conv", "a ResNet-ViT hybrid"},
      {"params/txt/embed", "a SigLIP or LiT model with a text tower"},
      {"params/img/head/kernel_txt", "a SigLIP model"},
      {"text_projection", "a CLIP model with a text tower"},
      {"text_model.embed", "a CLIP or SigLIP model with a text tower"},
      {"logit_scale", "a CLIP or SigLIP model"},
      {"visual.class_embedding", "a CLIP image tower"},
      {"visual.trunk.norm", "a CLIP or SigLIP image tower"},
      {"pre_layrnorm.weight", "a CLIP image tower"},
      {"vision_model.norm", "a CLIP or SigLIP image tower"},
      {"blocks.0.mlp.w12.weight", "a ViT with SwiGLU"},
      {"blocks.0.mlp.weights_in.weight", "a ViT with SwiGLU"},
      {"blocks.0.mlp.fc1_g.weight", "a ViT with SwiGLU"},
      {"blocks.0.mlp.w1.weight", "a ViT with SwiGLU"},
      {"rope.periods", "a ViT with rotary positions (RoPE)"},
      {"rotary_emb", "a ViT with rotary positions (RoPE)"},
      {"blocks.0.relative_position_bias_table", "BEiT (relative position bias)"},
      {"blocks.0.relative_position_index", "BEiT (relative position bias)"},
      {"blocks.0.attn.q_bias", "BEiT or EVA"},
      {"decoder_blocks.0.norm", "a masked autoencoder's pretraining file"},
      {"decoder_embed.weight", "a masked autoencoder's pretraining file"},
      {"layer_scale1.lambda1", "DINOv2"},
      {"mask_token", "DINOv2 or another masked-image model"},
  };
  for (const auto& [name, family] : rows) {
    NamesOnly source = timm_names();
    source.add(name);
    EXPECT_EQ(error_of([&] { refuse_other_families(source); }), "data: this is " + std::string(family) +
                                                                    " (it holds \"" + name +
                                                                    "\"); only plain ViTs are supported");
  }
  NamesOnly masked = timm_names();
  masked.add("vit.embeddings.mask_token");
  EXPECT_NO_THROW(refuse_other_families(masked));
}

TEST(Families, EveryNameThatAConfigGives) {
  const std::pair<const char*, const char*> rows[] = {
      {"DINOv3_ViT", "DINOv3"},
      {"dinov2", "DINOv2"},
      {"vitamin_small", "ViTamin"},
      {"siglip2", "SigLIP"},
      {"clip-vision", "CLIP"},
      {"swin_v2_t", "a Swin transformer, version 2"},
      {"swin_t", "a Swin transformer"},
      {"maxvit_t", "MaxViT"},
      {"maxxvit_t", "MaxxViT"},
      {"coatnet_0", "CoAtNet"},
      {"beitv2_base", "BEiT, version 2"},
      {"beit3_base", "BEiT, version 3"},
      {"beit_base", "BEiT"},
      {"data2vec-vision", "data2vec"},
      {"eva02_base", "EVA-02"},
      {"eva_giant", "EVA"},
      {"vit_rope", "a ViT with rotary positions (RoPE)"},
      {"vit_hybrid", "a ResNet-ViT hybrid"},
      {"vit_base_resnet26d", "a ResNet-ViT hybrid"},
      {"vit_base_resnet50", "a ResNet-ViT hybrid"},
      {"vit_tiny_r_s16_p8", "a ResNet-ViT hybrid"},
      {"vit_small_r26_s32", "a ResNet-ViT hybrid"},
      {"vit_base_r50_s16", "a ResNet-ViT hybrid"},
      {"vit_large_r50_s32", "a ResNet-ViT hybrid"},
      {"tipsv2_other", "TIPS"},
      {"vit_mae", "a masked autoencoder"},
      {"videomae", "VideoMAE"},
      {"dpt", "DPT (dense prediction)"},
      {"yolos", "YOLOS (detection)"},
      {"vitdet", "ViTDet (detection)"},
      {"vitpose", "ViTPose"},
      {"segformer", "SegFormer"},
      {"samvit_base", "a SAM image encoder"},
      {"vivit", "ViViT (video)"},
      {"aimv2", "AIMv2"},
      {"naflexvit_base", "NaFlexViT"},
      {"vit_pe_core", "a Perception Encoder"},
      {"another", "a model called \"another\""},
  };
  for (const auto& [name, family] : rows)
    for (const char* key : {"model_type", "architecture"})
      EXPECT_EQ(error_of([&, value = name] {
                  refuse_other_families(Json{{key, value}});
                }),
                "data: this is " + std::string(family) + " (config.json's " + key + " is \"" + name +
                    "\"); only plain ViTs are supported");
  const Json nested = {{"pretrained_cfg", {{"architecture", "dpt"}}}};
  EXPECT_NE(error_of([&] { refuse_other_families(nested); }), "");
  const Json masked = {{"model_type", "vit"}, {"architectures", {"ViTModel", "ViTForMaskedImageModeling"}}};
  EXPECT_EQ(
      error_of([&] { refuse_other_families(masked); }),
      "data: this is a ViT for masked-image pretraining, without a classifier (config.json's architectures "
      "is \"ViTForMaskedImageModeling\"); only plain ViTs are supported");
  for (const char* plain : {"vit", "deit", "vit_msn", "ijepa", "timm_wrapper"})
    EXPECT_NO_THROW(refuse_other_families(Json{{"model_type", plain}})) << plain;
  EXPECT_NO_THROW(refuse_other_families(Json{{"architecture", "vit_base_patch16_224.tag"}}));
}

TEST(Families, WhatADialectHasNoPlaceFor) {
  struct Row {
    const char* what;
    const char* holders;  // initials of timm, hf, torchvision ("v") and google
    void (*change)(VitConfig&);
  };
  const Row rows[] = {
      {"", "thvg", [](VitConfig&) {}},
      {"sincos2d positions", "g", [](VitConfig& c) { c.pos = PosKind::kSinCos2d, c.pos_for_prefix = false; }},
      {"register tokens", "t", [](VitConfig& c) { c.registers = 1; }},
      {"qk-norm", "t", [](VitConfig& c) { c.qk_norm = true; }},
      {"LayerScale", "t", [](VitConfig& c) { c.layer_scale = true; }},
      {"a distillation token", "th", [](VitConfig& c) { c.distilled = true; }},
      {"max pooling", "t", [](VitConfig& c) { c.pool = Pool::kMax; }},
      {"max pooling", "t", [](VitConfig& c) { c.pool = Pool::kMeanMax; }},
      {"pooling of refined patches", "t", [](VitConfig& c) { c.pool = Pool::kPrr, c.class_token = false; }},
      {"a model without a block", "th", [](VitConfig& c) { c.depth = 0; }},
      {"tokens without positions", "t", [](VitConfig& c) { c.pos = PosKind::kNone; }},
      {"no norm after the blocks", "t", [](VitConfig& c) { c.norm_place = NormPlace::kNone; }},
      {"a norm before the blocks", "t", [](VitConfig& c) { c.pre_norm = true; }},
      {"a norm within the patch embedding", "t", [](VitConfig& c) { c.embed_norm = EmbedNorm::kRms; }},
      {"pre_logits with another activation than tanh", "h",
       [](VitConfig& c) { c.pre_logits = true, c.pre_logits_act = ActKind::kRelu, c.classes = 0; }},
      {"norms within attention or the MLP", "t", [](VitConfig& c) { c.attn_norm = true; }},
      {"norms within attention or the MLP", "t", [](VitConfig& c) { c.mlp_norm = true; }},
      {"norms other than layernorm", "t", [](VitConfig& c) { c.norm = NormKind::kRms; }},
      {"norms other than layernorm", "t", [](VitConfig& c) { c.norm = NormKind::kSimple; }},
      {"an activation other than GELU", "th", [](VitConfig& c) { c.activation = ActKind::kRelu; }},
      {"patches that are not square", "th", [](VitConfig& c) { c.patch_width = 8; }},
      {"patches that do not cover the image", "thg",
       [](VitConfig& c) { c.image_height = c.image_width = 230; }},
      {"a MAP head", "tg", [](VitConfig& c) { c.pool = Pool::kMap, c.class_token = false; }},
      {"average pooling", "tg", [](VitConfig& c) { c.pool = Pool::kMean, c.class_token = false; }},
      {"average pooling beside a class token", "t", [](VitConfig& c) { c.pool = Pool::kMean; }},
      {"a layernorm after pooling", "t", [](VitConfig& c) { c.norm_place = NormPlace::kAfterPool; }},
      {"a class token without a position", "tg", [](VitConfig& c) { c.pos_for_prefix = false; }},
      {"q, k and v without biases", "th", [](VitConfig& c) { c.qkv_bias = false; }},
      {"pre_logits before a head", "tvg", [](VitConfig& c) { c.pre_logits = true; }},
      {"other than 3 input channels", "thg", [](VitConfig& c) { c.channels = 1; }},
      {"an image that is not square", "thg", [](VitConfig& c) { c.image_width = 448; }},
  };
  const std::pair<Dialect, char> dialects[] = {
      {Dialect::kTimm, 't'}, {Dialect::kHf, 'h'}, {Dialect::kTorchvision, 'v'}, {Dialect::kGoogle, 'g'}};
  for (const Row& row : rows)
    for (const auto& [dialect, initial] : dialects) {
      SCOPED_TRACE(std::string(row.what) + " in " + enum_name(dialect));
      VitConfig config;
      row.change(config);
      const bool held = std::string(row.holders).find(initial) != std::string::npos;
      EXPECT_EQ(can_express(dialect, config), held);
      const std::string said = error_of([&, wanted = dialect] { refuse_inexpressible(wanted, config); });
      EXPECT_EQ(said.empty(), held) << said;
      // google and torchvision speak of the mean first, where a class token is beside it.
      if (!held && std::string(row.what) != "average pooling beside a class token") {
        EXPECT_EQ(said, strf("usage: the %s dialect has no place for %s", enum_name(dialect), row.what));
      }
    }
}

}  // namespace
}  // namespace vitrail
