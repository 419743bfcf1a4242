// How names become parameters.
#include "io/dialects/bind.h"

#include "io/names_only.h"

namespace vitrail {
namespace {

using Notes = std::vector<std::string>;

std::string binds(const NamesOnly& source) {
  return error_of([&] { bind_tensors(source); });
}
TEST(BindNames, BlocksAreNumberedBelowALimit) {
  NamesOnly source = timm_names();
  source.add("blocks.1023.norm1.weight", {8});
  EXPECT_EQ(bind_tensors(source).depth, 1024);
  source.add("blocks.1024.norm1.weight", {8});
  EXPECT_EQ(binds(source), "data: not a plain ViT: in timm names, unexpected \"blocks.1024.norm1.weight\"");
  for (const char* name :
       {"blocks.01.norm1.weight", "blocks..norm1.weight", "blocks.0.norm1.weights", "blocks.0.norm1.weigh"}) {
    NamesOnly odd = timm_names();
    odd.add(name, {8});
    EXPECT_NE(binds(odd).find(name), std::string::npos) << name;
  }
}

TEST(BindNames, BlocksOfOneTensorAreCounted) {
  for (const auto& [blocks, fits] :
       {std::pair<int64_t, bool>{0, false}, {1, true}, {1024, true}, {1025, false}}) {
    NamesOnly source;
    source.add("params/embedding/kernel", {4, 4, 3, 8});
    source.add("params/Transformer/encoderblock/LayerNorm_0/scale", {blocks, 8});
    const std::string said = binds(source);
    EXPECT_EQ(said,
              fits ? ""
                   : strf("data: \"params/Transformer/encoderblock/LayerNorm_0/scale\" stacks %d blocks; "
                          "between 1 and 1024 are supported",
                          static_cast<int>(blocks)));
    if (!fits) continue;
    const Binding binding = bind_tensors(source);
    EXPECT_EQ(binding.depth, blocks);
    EXPECT_EQ(binding.pieces.at(strf("blocks.%d.norm1.weight", static_cast<int>(blocks) - 1))[0].slice,
              blocks - 1);
  }
}

TEST(BindNames, UnexpectedNamesAreListedUpToFive) {
  NamesOnly source = timm_names();
  for (const char* name : {"q1", "q2", "q3", "q4", "q5"}) source.add(name);
  EXPECT_EQ(binds(source),
            "data: not a plain ViT: in timm names, unexpected \"q1\", \"q2\", \"q3\", \"q4\", \"q5\"");
  source.add("q6");
  EXPECT_NE(binds(source).find("\"q5\" and 1 more"), std::string::npos);
  source.add("q7");
  EXPECT_EQ(
      binds(source),
      "data: not a plain ViT: in timm names, unexpected \"q1\", \"q2\", \"q3\", \"q4\", \"q5\" and 2 more");
}

TEST(BindNames, OneParameterHasOneTensor) {
  NamesOnly source = timm_names();
  source.add("blocks.0.ls1.gamma", {8});
  source.add("blocks.0.gamma_1", {8});
  EXPECT_EQ(binds(source),
            "data: \"blocks.0.ls1.gamma\" and \"blocks.0.gamma_1\" both stand for blocks.0.ls1.gamma");
}

TEST(BindNames, WhatLiesBesideTheModelIsLeftOutAndSaid) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"optimizer.state.0", "optimizer*", "optimizer state"},
      {"model_ema.norm.weight", "model_ema*", "averaged weights"},
      {"ema.norm.weight", "ema*", "averaged weights"},
      {"lr_scheduler.last", "lr_scheduler*", "training state"},
      {"scaler.scale", "scaler*", "training state"},
      {"amp.loss", "amp*", "training state"},
      {"n_averaged", "n_averaged", "how many weights were averaged"},
      {"criterion.weight", "criterion.*", "a part of the loss"},
      {"loss.weight", "loss.*", "a part of the loss"},
      {"loss_fn.weight", "loss_fn.*", "a part of the loss"},
      {"head.mlp.0.weight", "head.mlp.*", "the projection head of self-supervised training"},
      {"head.last_layer.weight", "head.last_layer.*", "the projection head of self-supervised training"},
  };
  for (const auto& [name, pattern, reason] : rows) {
    NamesOnly source = without(timm_names(), "", "model.");
    source.add(name);
    source.add(std::string(name) == "n_averaged" ? "scaler.a" : name + std::string("x"));
    const Notes notes = bind_tensors(source).notes;
    ASSERT_GE(notes.size(), 1u) << name;
    EXPECT_EQ(notes[0], strf("%s left out: %s", pattern, reason));
    EXPECT_EQ(notes.size(), std::string(name) == "n_averaged" ? 2u : 1u) << "said once";
  }
}

TEST(BindNames, ModelsOfOneFile) {
  NamesOnly none;
  EXPECT_EQ(binds(none),
            "data: the tensors are not named as timm, Hugging Face, torchvision or google name a ViT's "
            "(found none)");
  for (const char* name : {"a", "b", "c", "d", "e"}) none.add(name);
  EXPECT_NE(binds(none).find("(found \"a\", \"b\", \"c\", \"d\")"), std::string::npos);
  NamesOnly two;
  two.add("one.patch_embed.proj.weight");
  two.add("two.patch_embed.proj.weight");
  EXPECT_EQ(binds(two), "data: the file holds 2 models, whose names begin with \"one.\", \"two.\"");
  for (const char* usual :
       {"module.", "model.", "state_dict.", "_orig_mod.", "timm_model.", "model.module._orig_mod."}) {
    NamesOnly source = without(timm_names(), "", usual);
    source.add("ema.patch_embed.proj.weight");
    EXPECT_EQ(binds(source), "") << usual;
  }
}

TEST(BindNames, HeadsThatWereExchanged) {
  NamesOnly source = without(timm_names(), "head.");
  source.add("head.1.weight", {5, 8});
  source.add("head.1.bias", {5});
  const Binding binding = bind_tensors(source);
  EXPECT_TRUE(binding.has("head.weight"));
  EXPECT_TRUE(binding.has("head.bias"));
  EXPECT_EQ(binding.notes, Notes{"the head is \"head.1.weight\" alone: a dropout before it changes nothing, "
                                 "anything else is not in the file"});
  NamesOnly lone = without(timm_names(), "head.");
  lone.add("head.1.running_mean", {5});
  EXPECT_EQ(binds(lone),
            "data: the head is not one linear layer: it has \"head.1.running_mean\", and what is done "
            "between its layers is not in the file");
  NamesOnly norm = without(timm_names(), "head.");
  norm.add("head.0.weight", {8});
  EXPECT_NE(binds(norm).find("it has \"head.0.weight\""), std::string::npos) << "one dim";
  NamesOnly both = timm_names();
  both.add("head.1.weight", {5, 8});
  EXPECT_NE(binds(both).find("the head is not one linear layer"), std::string::npos);
}

TEST(BindNames, AbsentBiasesAreZeros) {
  EXPECT_EQ(bind_tensors(timm_names()).notes, Notes{});
  const Binding head = bind_tensors(without(timm_names(), "head.bias"));
  EXPECT_EQ(head.notes, Notes{"head.bias and 0 more: no bias"});
  NamesOnly bare = timm_names(2);
  for (const char* part : {"proj.bias", "fc1.bias", "fc2.bias"}) bare = without(bare, part);
  EXPECT_EQ(bind_tensors(bare).zeros.size(), 7u) << "three of each block, and the patches'";
  EXPECT_EQ(bind_tensors(bare).notes, Notes{"blocks.0.attn.proj.bias and 6 more: no bias"});
  EXPECT_TRUE(bind_tensors(without(timm_names(2), "blocks.1.mlp.fc1.bias")).zeros.empty());
  NamesOnly clip = without(timm_names(), "patch_embed.proj.bias");
  EXPECT_EQ(bind_tensors(clip).zeros.size(), 1u);
  clip.add("norm_pre.weight", {8});
  EXPECT_TRUE(bind_tensors(clip).zeros.empty()) << "before a norm there is none";
}

TEST(BindNames, OnlyPatchesBeforeANormLackTheirBiasByDesign) {
  NamesOnly source = without(without(timm_names(), "patch_embed.proj.bias"), "head.bias");
  source.add("norm_pre.weight", {8});
  source.add("norm_pre.bias", {8});
  EXPECT_EQ(bind_tensors(source).zeros, std::set<std::string>{"head.bias"});
}

TEST(BindNames, WrappersWithinAModelAreTakenOff) {
  const NamesOnly plain = timm_names();
  NamesOnly wrapped;
  for (const TensorInfo& tensor : plain.tensors()) {
    std::string name = tensor.name;
    for (const auto& [part, wrapper] : {std::pair{"blocks.0.", "_checkpoint_wrapped_module."},
                                        {"attn.", "_fsdp_wrapped_module."},
                                        {"mlp.", "_orig_mod."}})
      if (const size_t at = name.find(part); at != name.npos) name.insert(at + strlen(part), wrapper);
    wrapped.add(name, tensor.shape);
  }
  EXPECT_EQ(bind_tensors(wrapped).pieces.size(), bind_tensors(plain).pieces.size());
}

TEST(BindNames, TokensAndPoolersOfTransformers) {
  NamesOnly source;
  source.add("vit.embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4});
  EXPECT_EQ(binds(source),
            "data: the model has neither a class token nor a classifier: nothing stands for the image");
  source.add("vit.embeddings.patch_embeddings.projection.bias", {8});
  source.add("vit.embeddings.cls_token", {1, 1, 8});
  source.add("vit.pooler.dense.weight", {8, 8});
  source.add("vit.pooler.dense.bias", {8});
  EXPECT_TRUE(bind_tensors(source).has("pre_logits.fc.weight"));
  source.add("classifier.weight", {5, 8});
  source.add("classifier.bias", {5});
  source.add("vit.embeddings.distillation_token", {1, 1, 8});
  source.add("vit.embeddings.position_ids", {1, 5});
  source.add("vit.embeddings.mask_token", {1, 1, 8});
  source.add("encoder.layer.0.layernorm_before.weight", {8});  // as transformers 5 saves those of ViT-MSN
  const Binding binding = bind_tensors(source);
  EXPECT_FALSE(binding.has("pre_logits.fc.weight"));
  EXPECT_FALSE(binding.has("pre_logits.fc.bias"));
  EXPECT_TRUE(binding.has("reg_token"));
  EXPECT_TRUE(binding.has("blocks.0.norm1.weight"));
  EXPECT_EQ(binding.notes,
            (Notes{"embeddings.position_ids left out: a counting buffer",
                   "embeddings.mask_token left out: for masked pretraining",
                   "pooler.dense left out: the classifier does not use it",
                   "the distillation token has no head: it is one more token beside the others"}));
}

}  // namespace
}  // namespace vitrail
