// The parameters of a ViT by canonical name (timm's) with named shapes. Model code, weight tables and `plan`
// share this one list, so that they cannot disagree.
#pragma once

#include <string>
#include <vector>

#include "models/vit_config.h"
#include "tensor/shape.h"

namespace vitrail {

// The part of the model that a parameter belongs to; norms and layer scales are parts of their own.
enum class ParamPart : uint8_t {
  kUnlisted,  // of a spec that only names what is read
  kPatches,
  kTokens,  // prefix tokens and positions
  kAttention,
  kMlp,
  kNorm,
  kLayerScale,
  kPreLogits,
  kHead
};
enum class ParamRole : uint8_t {
  kMatrix,
  kBias,
  kGain,  // of a norm or a layer scale
  kToken,
  kDistillToken,
  kPositions,
  kLatent,  // the query of attention pooling
  kLoraA,
  kLoraB
};

struct ParamSpec {
  std::string name;
  Shape shape;  // row-major, outermost first: linear weights are [outputs..., inputs...]
  ParamPart part = ParamPart::kUnlisted;
  ParamRole role = ParamRole::kMatrix;
  size_t output_rank = 1;  // of a matrix: how many leading dims are outputs
  int block = -1;          // of the encoder; -1: outside the blocks
  bool pools = false;      // of attention pooling, which is part of the head
};

// Returns the parameters in the order of a forward pass. RMSNorm models have no biases in their norms;
// sincos2d models and those without positions have no "pos_embed".
//   patch_embed.proj.weight [D C P Q]  .bias [D]      cls_token [S1 D]  dist_token [S1 D]  reg_token [S D]
//   pos_embed [N D]: class row, distillation row, register rows (if pos_for_prefix), then the grid row by row
//   norm_pre.{weight,bias} [D], and then no patch_embed.proj.bias
//   blocks.i.norm1.{weight,bias} [D]     blocks.i.attn.qkv.weight [T3 H E D] .bias [T3 H E]
//   blocks.i.attn.{q_norm,k_norm}.{weight,bias} [E]
//   blocks.i.attn.proj.weight [D H E] .bias [D]       blocks.i.ls1.gamma [D]   blocks.i.ls2.gamma [D]
//   blocks.i.norm2.{weight,bias} [D]  blocks.i.mlp.fc1.weight [F D] .bias [F]  .fc2.weight [D F] .bias [D]
//   norm.{weight,bias} or fc_norm.{weight,bias} [D]
//   attn_pool.latent [S1 D]  .q.weight [H E D] .bias [H E]  .kv.weight [T2 H E D] .bias [T2 H E]
//   attn_pool.proj.weight [D H E] .bias [D]  .norm.*  .mlp.fc1.* .mlp.fc2.*   (as in a block)
//   pre_logits.fc.weight [O D] .bias [O]   head.weight [K D] .bias [K]   head_dist.weight [K D] .bias [K]
//   (after pre_logits the heads read O instead of D)
std::vector<ParamSpec> vit_params(const VitConfig& config);

int64_t count_params(const VitConfig& config);

// Multiply-adds of the GEMMs of one forward pass of one image: for all tokens, and for those that actually
// run. The latter leave out what the last block would compute for tokens nobody reads, and with `from_tokens`
// also their keys and values, where a fused attention computes the class token from the tokens themselves.
int64_t count_macs(const VitConfig& config);
int64_t count_run_macs(const VitConfig& config, bool from_tokens = false);

// Returns whether only the class token is read of the last block's output.
bool reads_class_token_alone(const VitConfig& config);

}  // namespace vitrail
