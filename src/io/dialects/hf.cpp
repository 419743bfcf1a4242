// The names and layouts of tensors in files of Hugging Face transformers.
#include "io/dialects/dialect_table.h"

namespace vitrail {

namespace {

constexpr const char* kPrefixes[] = {"vit.", "deit.", "ijepa.", ""};

// Files keep the names of transformers 4; the names with q_proj and fc1 are those of transformers 5 in
// memory, found in bare state dicts. The first form is ViT, the second DeiT with its teacher's head.
constexpr NameRow kRows[] = {
    {"@embeddings.cls_token", "1SD", "cls_token"},
    {"@embeddings.distillation_token", "1SD", "dist_token"},
    {"@embeddings.position_embeddings", "1ND", "pos_embed"},
    {"@embeddings.patch_embeddings.projection.weight", "DCPQ", "patch_embed.proj.weight"},
    {"@embeddings.patch_embeddings.projection.bias", "D", "patch_embed.proj.bias"},
    {"@encoder.layer.{i}.layernorm_before.weight", "D", "blocks.{i}.norm1.weight"},
    {"@encoder.layer.{i}.layernorm_before.bias", "D", "blocks.{i}.norm1.bias"},
    {"@encoder.layer.{i}.attention.attention.query.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 0},
    {"@encoder.layer.{i}.attention.attention.key.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 1},
    {"@encoder.layer.{i}.attention.attention.value.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 2},
    {"@encoder.layer.{i}.attention.attention.query.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 0},
    {"@encoder.layer.{i}.attention.attention.key.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 1},
    {"@encoder.layer.{i}.attention.attention.value.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 2},
    {"@encoder.layer.{i}.attention.output.dense.weight", "D(HE)", "blocks.{i}.attn.proj.weight"},
    {"@encoder.layer.{i}.attention.output.dense.bias", "D", "blocks.{i}.attn.proj.bias"},
    {"@encoder.layer.{i}.layernorm_after.weight", "D", "blocks.{i}.norm2.weight"},
    {"@encoder.layer.{i}.layernorm_after.bias", "D", "blocks.{i}.norm2.bias"},
    {"@encoder.layer.{i}.intermediate.dense.weight", "FD", "blocks.{i}.mlp.fc1.weight"},
    {"@encoder.layer.{i}.intermediate.dense.bias", "F", "blocks.{i}.mlp.fc1.bias"},
    {"@encoder.layer.{i}.output.dense.weight", "DF", "blocks.{i}.mlp.fc2.weight"},
    {"@encoder.layer.{i}.output.dense.bias", "D", "blocks.{i}.mlp.fc2.bias"},
    {"@layers.{i}.layernorm_before.weight", "D", "blocks.{i}.norm1.weight", 0, Form::kReadOnly},
    {"@layers.{i}.layernorm_before.bias", "D", "blocks.{i}.norm1.bias", 0, Form::kReadOnly},
    {"@layers.{i}.attention.q_proj.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 0, Form::kReadOnly},
    {"@layers.{i}.attention.k_proj.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 1, Form::kReadOnly},
    {"@layers.{i}.attention.v_proj.weight", "(HE)D", "blocks.{i}.attn.qkv.weight", 2, Form::kReadOnly},
    {"@layers.{i}.attention.q_proj.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 0, Form::kReadOnly},
    {"@layers.{i}.attention.k_proj.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 1, Form::kReadOnly},
    {"@layers.{i}.attention.v_proj.bias", "(HE)", "blocks.{i}.attn.qkv.bias", 2, Form::kReadOnly},
    {"@layers.{i}.attention.o_proj.weight", "D(HE)", "blocks.{i}.attn.proj.weight", 0, Form::kReadOnly},
    {"@layers.{i}.attention.o_proj.bias", "D", "blocks.{i}.attn.proj.bias", 0, Form::kReadOnly},
    {"@layers.{i}.layernorm_after.weight", "D", "blocks.{i}.norm2.weight", 0, Form::kReadOnly},
    {"@layers.{i}.layernorm_after.bias", "D", "blocks.{i}.norm2.bias", 0, Form::kReadOnly},
    {"@layers.{i}.mlp.fc1.weight", "FD", "blocks.{i}.mlp.fc1.weight", 0, Form::kReadOnly},
    {"@layers.{i}.mlp.fc1.bias", "F", "blocks.{i}.mlp.fc1.bias", 0, Form::kReadOnly},
    {"@layers.{i}.mlp.fc2.weight", "DF", "blocks.{i}.mlp.fc2.weight", 0, Form::kReadOnly},
    {"@layers.{i}.mlp.fc2.bias", "D", "blocks.{i}.mlp.fc2.bias", 0, Form::kReadOnly},
    {"@layernorm.weight", "D", "norm.weight"},
    {"@layernorm.bias", "D", "norm.bias"},
    {"@pooler.dense.weight", "OD", "pre_logits.fc.weight"},
    {"@pooler.dense.bias", "O", "pre_logits.fc.bias"},
    {"classifier.weight", "KD", "head.weight", 0, Form::kFirst},
    {"classifier.bias", "K", "head.bias", 0, Form::kFirst},
    {"cls_classifier.weight", "KD", "head.weight", 0, Form::kSecond},
    {"cls_classifier.bias", "K", "head.bias", 0, Form::kSecond},
    {"distillation_classifier.weight", "KD", "head_dist.weight", 0, Form::kSecond},
    {"distillation_classifier.bias", "K", "head_dist.bias", 0, Form::kSecond},
};

// ViTModel's pooler is a linear and tanh on the class token. Classifiers do not use a pooler that their file
// holds.
constexpr IgnoredName kIgnored[] = {
    {"@embeddings.position_ids", "a counting buffer"},
    {"@embeddings.mask_token", "for masked pretraining"},
};

constexpr std::string_view kHeads[] = {"classifier"};

}  // namespace

const DialectTable kHfTable = {Dialect::kHf, "embeddings.patch_embeddings.projection.weight",
                               kPrefixes,    {"vit.", "deit."},
                               kRows,        kIgnored,
                               kHeads};

}  // namespace vitrail
