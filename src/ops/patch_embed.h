// Cuts an image into patches and projects each: x [B C Y X], w [D C P Q] -> [B N D], patches row by row. Rows
// and columns beyond the last whole patch are not read.
#pragma once

#include "graph/op.h"

namespace vitrail {

class PatchEmbedOp : public Op {
 public:
  static constexpr std::string_view kKind = "patch_embed";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"YXPQ"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  int weight_input() const override { return 1; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

// The gradient of w: x [B C Y X], dy [B N D] -> [D C P Q]. Images need no gradient.
class PatchEmbedDwOp : public Op {
 public:
  PatchEmbedDwOp(int64_t patch_rows, int64_t patch_columns) : rows_(patch_rows), columns_(patch_columns) {}

  static constexpr std::string_view kKind = "patch_embed_dw";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NYXPQ"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;

 private:
  int64_t rows_, columns_;
};

}  // namespace vitrail
