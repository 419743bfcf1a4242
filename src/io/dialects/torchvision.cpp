// The names and layouts of tensors in files of torchvision.
#include "io/dialects/dialect_table.h"

namespace vitrail {

namespace {

constexpr const char* kPrefixes[] = {""};

// Old files name the MLP's layers linear_1 and linear_2.
constexpr NameRow kRows[] = {
    {"@class_token", "1SD", "cls_token"},
    {"@conv_proj.weight", "DCPQ", "patch_embed.proj.weight"},
    {"@conv_proj.bias", "D", "patch_embed.proj.bias"},
    {"@encoder.pos_embedding", "1ND", "pos_embed"},
    {"@encoder.layers.encoder_layer_{i}.ln_1.weight", "D", "blocks.{i}.norm1.weight"},
    {"@encoder.layers.encoder_layer_{i}.ln_1.bias", "D", "blocks.{i}.norm1.bias"},
    {"@encoder.layers.encoder_layer_{i}.self_attention.in_proj_weight", "(THE)D",
     "blocks.{i}.attn.qkv.weight"},
    {"@encoder.layers.encoder_layer_{i}.self_attention.in_proj_bias", "(THE)", "blocks.{i}.attn.qkv.bias"},
    {"@encoder.layers.encoder_layer_{i}.self_attention.out_proj.weight", "D(HE)",
     "blocks.{i}.attn.proj.weight"},
    {"@encoder.layers.encoder_layer_{i}.self_attention.out_proj.bias", "D", "blocks.{i}.attn.proj.bias"},
    {"@encoder.layers.encoder_layer_{i}.ln_2.weight", "D", "blocks.{i}.norm2.weight"},
    {"@encoder.layers.encoder_layer_{i}.ln_2.bias", "D", "blocks.{i}.norm2.bias"},
    {"@encoder.layers.encoder_layer_{i}.mlp.0.weight", "FD", "blocks.{i}.mlp.fc1.weight"},
    {"@encoder.layers.encoder_layer_{i}.mlp.0.bias", "F", "blocks.{i}.mlp.fc1.bias"},
    {"@encoder.layers.encoder_layer_{i}.mlp.3.weight", "DF", "blocks.{i}.mlp.fc2.weight"},
    {"@encoder.layers.encoder_layer_{i}.mlp.3.bias", "D", "blocks.{i}.mlp.fc2.bias"},
    {"@encoder.layers.encoder_layer_{i}.mlp.linear_1.weight", "FD", "blocks.{i}.mlp.fc1.weight", 0,
     Form::kReadOnly},
    {"@encoder.layers.encoder_layer_{i}.mlp.linear_1.bias", "F", "blocks.{i}.mlp.fc1.bias", 0,
     Form::kReadOnly},
    {"@encoder.layers.encoder_layer_{i}.mlp.linear_2.weight", "DF", "blocks.{i}.mlp.fc2.weight", 0,
     Form::kReadOnly},
    {"@encoder.layers.encoder_layer_{i}.mlp.linear_2.bias", "D", "blocks.{i}.mlp.fc2.bias", 0,
     Form::kReadOnly},
    {"@encoder.ln.weight", "D", "norm.weight"},
    {"@encoder.ln.bias", "D", "norm.bias"},
    {"@heads.pre_logits.weight", "OD", "pre_logits.fc.weight"},
    {"@heads.pre_logits.bias", "O", "pre_logits.fc.bias"},
    {"@heads.head.weight", "KD", "head.weight"},
    {"@heads.head.bias", "K", "head.bias"},
};

constexpr std::string_view kHeads[] = {"heads"};

}  // namespace

const DialectTable kTorchvisionTable = {
    Dialect::kTorchvision, "conv_proj.weight", kPrefixes, {"", ""}, kRows, {}, kHeads};

}  // namespace vitrail
