#include "encoder.h"

#include <cmath>
#include <thread>

namespace seed_000 {

namespace {

// Weights are small, so that softmax, which does not subtract the largest score, stays finite.
MatrixXd drawn(int rows, int columns) {
  return MatrixXd::Random(rows, columns) * 0.02;
}

MatrixXd softmax(const MatrixXd& scores) {
  MatrixXd weights = scores.array().exp();
  for (int row = 0; row < weights.rows(); ++row) weights.row(row) /= weights.row(row).sum();
  return weights;
}

}  // namespace

MatrixXd Head::attend(const MatrixXd& x) const {
  const MatrixXd q = x * query, k = x * key, v = x * value;
  return softmax(q * k.transpose() / std::sqrt(static_cast<double>(kWidth))) * v;
}

Layer::Layer()
    : output(drawn(kHeads * kWidth, kWidth)), first(drawn(kWidth, kHidden)), second(drawn(kHidden, kWidth)) {
  for (int head = 0; head < kHeads; ++head)
    heads.push_back({drawn(kWidth, kWidth), drawn(kWidth, kWidth), drawn(kWidth, kWidth)});
}

MatrixXd Layer::self_attention(const MatrixXd& x) const {
  MatrixXd joined(x.rows(), kHeads * kWidth);
  std::vector<std::thread> threads;
  threads.reserve(kHeads);
  for (int head = 0; head < kHeads; ++head)
    threads.emplace_back(
        [&, head] { joined.middleCols(head * kWidth, kWidth) = heads[static_cast<size_t>(head)].attend(x); });
  for (std::thread& thread : threads) thread.join();
  return joined * output;
}

MatrixXd Layer::mlp(const MatrixXd& x) const {
  const MatrixXd hidden = x * first;
  return hidden * second;
}

Embeddings::Embeddings()
    : projection(drawn(kWidth, kWidth)), class_token(drawn(1, kWidth)), positions(drawn(kTokens, kWidth)) {}

MatrixXd Embeddings::embed(const MatrixXd& patches) const {
  MatrixXd tokens(kTokens, kWidth);
  tokens.row(0) = class_token;
  tokens.bottomRows(kPatches) = patches * projection;
  return tokens + positions;
}

MatrixXd layer_norm(const MatrixXd& x) {
  MatrixXd normal = x;
  for (int row = 0; row < normal.rows(); ++row) {
    normal.row(row).array() -= normal.row(row).mean();
    normal.row(row) /= std::sqrt(normal.row(row).squaredNorm() / kWidth);
  }
  return normal;
}

}  // namespace seed_000
