// The names and layouts of tensors in files of timm.
#include "io/dialects/dialect_table.h"

namespace vitrail {

namespace {

constexpr const char* kPrefixes[] = {""};

constexpr NameRow kRows[] = {
    {"@patch_embed.proj.weight", "DCPQ", "patch_embed.proj.weight"},
    {"@patch_embed.proj.bias", "D", "patch_embed.proj.bias"},
    {"@patch_embed.norm.weight", "D", "patch_embed.norm.weight"},
    {"@patch_embed.norm.bias", "D", "patch_embed.norm.bias"},
    {"@cls_token", "1SD", "cls_token"},
    {"@dist_token", "1SD", "dist_token"},
    {"@reg_token", "1SD", "reg_token"},
    {"@pos_embed", "1ND", "pos_embed"},
    {"@norm_pre.weight", "D", "norm_pre.weight"},
    {"@norm_pre.bias", "D", "norm_pre.bias"},
    {"@blocks.{i}.norm1.weight", "D", "blocks.{i}.norm1.weight"},
    {"@blocks.{i}.norm1.bias", "D", "blocks.{i}.norm1.bias"},
    {"@blocks.{i}.attn.qkv.weight", "(THE)D", "blocks.{i}.attn.qkv.weight"},
    {"@blocks.{i}.attn.qkv.bias", "(THE)", "blocks.{i}.attn.qkv.bias"},
    {"@blocks.{i}.attn.q_norm.weight", "E", "blocks.{i}.attn.q_norm.weight"},
    {"@blocks.{i}.attn.q_norm.bias", "E", "blocks.{i}.attn.q_norm.bias"},
    {"@blocks.{i}.attn.k_norm.weight", "E", "blocks.{i}.attn.k_norm.weight"},
    {"@blocks.{i}.attn.k_norm.bias", "E", "blocks.{i}.attn.k_norm.bias"},
    {"@blocks.{i}.attn.norm.weight", "(HE)", "blocks.{i}.attn.norm.weight"},
    {"@blocks.{i}.attn.norm.bias", "(HE)", "blocks.{i}.attn.norm.bias"},
    {"@blocks.{i}.attn.proj.weight", "D(HE)", "blocks.{i}.attn.proj.weight"},
    {"@blocks.{i}.attn.proj.bias", "D", "blocks.{i}.attn.proj.bias"},
    {"@blocks.{i}.ls1.gamma", "D", "blocks.{i}.ls1.gamma"},
    {"@blocks.{i}.ls2.gamma", "D", "blocks.{i}.ls2.gamma"},
    {"@blocks.{i}.gamma_1", "D", "blocks.{i}.ls1.gamma", 0, Form::kReadOnly},  // DeiT-3's own files
    {"@blocks.{i}.gamma_2", "D", "blocks.{i}.ls2.gamma", 0, Form::kReadOnly},
    {"@blocks.{i}.norm2.weight", "D", "blocks.{i}.norm2.weight"},
    {"@blocks.{i}.norm2.bias", "D", "blocks.{i}.norm2.bias"},
    {"@blocks.{i}.mlp.fc1.weight", "FD", "blocks.{i}.mlp.fc1.weight"},
    {"@blocks.{i}.mlp.fc1.bias", "F", "blocks.{i}.mlp.fc1.bias"},
    {"@blocks.{i}.mlp.norm.weight", "F", "blocks.{i}.mlp.norm.weight"},
    {"@blocks.{i}.mlp.norm.bias", "F", "blocks.{i}.mlp.norm.bias"},
    {"@blocks.{i}.mlp.fc2.weight", "DF", "blocks.{i}.mlp.fc2.weight"},
    {"@blocks.{i}.mlp.fc2.bias", "D", "blocks.{i}.mlp.fc2.bias"},
    {"@norm.weight", "D", "norm.weight"},
    {"@norm.bias", "D", "norm.bias"},
    {"@fc_norm.weight", "D", "fc_norm.weight"},
    {"@fc_norm.bias", "D", "fc_norm.bias"},
    {"@attn_pool.latent", "1SD", "attn_pool.latent"},
    {"@attn_pool.q.weight", "(HE)D", "attn_pool.q.weight"},
    {"@attn_pool.q.bias", "(HE)", "attn_pool.q.bias"},
    {"@attn_pool.kv.weight", "(THE)D", "attn_pool.kv.weight"},
    {"@attn_pool.kv.bias", "(THE)", "attn_pool.kv.bias"},
    {"@attn_pool.proj.weight", "D(HE)", "attn_pool.proj.weight"},
    {"@attn_pool.proj.bias", "D", "attn_pool.proj.bias"},
    {"@attn_pool.norm.weight", "D", "attn_pool.norm.weight"},
    {"@attn_pool.norm.bias", "D", "attn_pool.norm.bias"},
    {"@attn_pool.mlp.fc1.weight", "FD", "attn_pool.mlp.fc1.weight"},
    {"@attn_pool.mlp.fc1.bias", "F", "attn_pool.mlp.fc1.bias"},
    {"@attn_pool.mlp.fc2.weight", "DF", "attn_pool.mlp.fc2.weight"},
    {"@attn_pool.mlp.fc2.bias", "D", "attn_pool.mlp.fc2.bias"},
    {"@pre_logits.fc.weight", "OD", "pre_logits.fc.weight"},
    {"@pre_logits.fc.bias", "O", "pre_logits.fc.bias"},
    {"@head.weight", "KD", "head.weight"},
    {"@head.bias", "K", "head.bias"},
    {"@head_dist.weight", "KD", "head_dist.weight"},
    {"@head_dist.bias", "K", "head_dist.bias"},
};

constexpr std::string_view kHeads[] = {"head"};

}  // namespace

const DialectTable kTimmTable = {Dialect::kTimm, "patch_embed.proj.weight", kPrefixes, {"", ""}, kRows, {},
                                 kHeads};

}  // namespace vitrail
