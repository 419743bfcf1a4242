// The ViT-Base encoder of "Performance Analysis of Parallelization on Vision Transformer" as its Table I must
// have been measured, written anew: Eigen in double precision, no biases, no GELU, layer norms without scale,
// and heads that each project all 768 columns to 768 (a ViT projects to 64), so that the output projection
// reads 9,216. It is no ViT that anybody has weights for; it is here for its times. Built without
// optimisation, as that program was.
#pragma once

#include <Eigen/Dense>
#include <vector>

namespace seed_000 {

using Eigen::MatrixXd;

inline constexpr int kTokens = 197, kPatches = 196, kWidth = 768, kHeads = 12, kHidden = 3072;

struct Head {
  MatrixXd query, key, value;  // kWidth x kWidth each
  MatrixXd attend(const MatrixXd& x) const;
};

struct Layer {
  Layer();
  // One thread a head, then the output projection on the caller's thread.
  MatrixXd self_attention(const MatrixXd& x) const;
  MatrixXd mlp(const MatrixXd& x) const;

  std::vector<Head> heads;
  MatrixXd output, first, second;
};

struct Embeddings {
  Embeddings();
  MatrixXd embed(const MatrixXd& patches) const;

  MatrixXd projection, class_token, positions;
};

MatrixXd layer_norm(const MatrixXd& x);

// Multiplications of each part: what its time is made of.
inline constexpr double kEmbeddingMacs = 1.0 * kPatches * kWidth * kWidth;
inline constexpr double kHeadMacs = 3.0 * kTokens * kWidth * kWidth + 2.0 * kTokens * kTokens * kWidth;
inline constexpr double kOutputMacs = 1.0 * kTokens * kHeads * kWidth * kWidth;
inline constexpr double kMlpMacs = 2.0 * kTokens * kWidth * kHidden;

}  // namespace seed_000
