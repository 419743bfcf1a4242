// Models of timm, transformers and torchvision that are no plain ViT, or are wrong: each is refused by its
// name.
#include <limits>

#include "io/library_forms.h"

namespace vitrail {
namespace {

TEST_F(LibraryForms, TheConfigsNameOfAFamilyIsBelievedFirst) {
  const std::pair<const char*, const char*> types[] = {{"swinv2", "a Swin transformer, version 2"},
                                                       {"beit", "this is BEiT"},
                                                       {"siglip_vision_model", "SigLIP"},
                                                       {"dinov3_vit", "DINOv3"},
                                                       {"dpt", "DPT"},
                                                       {"vit_mae", "masked autoencoder"},
                                                       {"convnextv2", "called \"convnextv2\""}};
  write_folder(tiny(), Dialect::kHf);
  for (const auto& [type, family] : types) {
    edit([type = type](Json& config) { config["model_type"] = type; });
    EXPECT_SAYS(refusal(at("m")), family);
  }
  const std::pair<const char*, const char*> names[] = {
      {"vitamin_small_224", "ViTamin"},
      {"vit_small_patch16_rope_224", "RoPE"},
      {"vit_small_patch16_dinov3", "DINOv3"},
      {"maxvit_tiny_rw_224", "MaxViT"},
      {"vit_base_patch16_rpn_224", "vit_base_patch16_rpn_224"}};
  for (const auto& [name, family] : names)
    EXPECT_SAYS(timm_refusal([name = name](Json& config) { config["architecture"] = name; }), family);
}

TEST_F(LibraryForms, WhatIsWrongInAModelsFilesIsDataWhereverItLies) {
  write_folder(tiny(), Dialect::kHf);
  edit([](Json& config) { config["num_attention_heads"] = 5; });
  try {
    open_model(at("m"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  }
  for (const OpenOptions& asked : {OpenOptions{.image_height = 17, .image_width = 17},
                                   OpenOptions{.image_height = 17}, OpenOptions{.image_width = 17}})
    try {
      open_model(kTimmHub, asked);
      ADD_FAILURE() << asked.image_height << " x " << asked.image_width;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig) << "what the user asked for: " << error.what();
    }
}

TEST_F(LibraryForms, MessagesSpeakOfTheModelNotOfSettings) {
  ModelCard card = tiny();
  card.config.class_token = false, card.config.pool = Pool::kMean,
  card.config.norm_place = NormPlace::kAfterPool;
  write_model(at("m"), card, {.dialect = Dialect::kTimm, .folder = true}, by_rule);
  edit([](Json& config) { config["vitrail"]["model"]["norm_place"] = "before_pool"; });
  const std::string said = refusal(at("m"));
  EXPECT_SAYS(said, "the last layernorm is before pooling");
  EXPECT_EQ(said.find("norm_place"), std::string::npos) << said;
}

// Tensors without bytes may have any shape: what is computed of their sizes must not overflow.
TEST_F(LibraryForms, SizesBeyondReasonAreRefusedBeforeAnythingIsComputedOfThem) {
  const auto said = [&](int64_t positions, int64_t patch) {
    std::vector<TensorToWrite> tensors;
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      tensors.push_back({{.name = name, .shape = std::move(shape), .bytes = 0}, [](std::span<std::byte>) {}});
    };
    add("patch_embed.proj.weight", {0, 3, patch, patch});
    add("pos_embed", {0, positions, 0});
    add("blocks.0.mlp.fc1.weight", {4, 0});
    write_safetensors(at("huge"), tensors, {});
    return refusal(at("huge"));
  };
  EXPECT_SAYS(said((int64_t{1} << 62) + 1, 8), "positions; between");
  EXPECT_SAYS(said(std::numeric_limits<int64_t>::max(), 8), "positions; between");
  EXPECT_SAYS(said((int64_t{1} << 62) + 1, int64_t{1} << 40), "on a side of a patch; between");
}

}  // namespace
}  // namespace vitrail
