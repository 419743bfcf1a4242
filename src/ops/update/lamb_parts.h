// LAMB in two ops, for parameters of which a rank holds a part: between them ranks sum the squares.
// LambMoments advances m and v and gives the squares of the parameter and of its update; LambMove takes the
// step. Together they do what LambUpdateOp does.
//   LambMoments: param, gradient sum, m, v, control -> squares f64 [Z2]
//   LambMove: param, m, v, squares, control
#pragma once

#include "ops/expect.h"
#include "ops/update/lamb.h"

namespace vitrail {

inline TensorDesc lamb_squares_desc() {
  return {DType::kF64, {{'Z', 2}}};
}

class LambMomentsOp : public Op {
 public:
  explicit LambMomentsOp(const LambUpdateOp& whole) : whole_(whole) {}

  static constexpr std::string_view kKind = "lamb_moments";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    expect_update(*this, ins, 2);
    return {lamb_squares_desc()};
  }
  DimsRule dims() const override { return {"Z"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].elems(); }
  std::string attributes() const override { return whole_.attributes(); }
  std::span<const int> updates() const override { return first_inputs(4).subspan(1); }

  const LambUpdateOp& whole() const { return whole_; }

 private:
  LambUpdateOp whole_;
};

class LambMoveOp : public Op {
 public:
  explicit LambMoveOp(const LambUpdateOp& whole) : whole_(whole) {}

  static constexpr std::string_view kKind = "lamb_move";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    expect_inputs(*this, ins, 5);
    expect_same(*this, {ins[1].dtype, ins[0].shape}, ins[1]);
    expect_same(*this, {ins[2].dtype, ins[0].shape}, ins[2]);
    expect_same(*this, lamb_squares_desc(), ins[3]);
    expect_same(*this, control_desc(), ins[4]);
    return {};
  }
  DimsRule dims() const override { return {"Z"}; }
  std::string attributes() const override { return whole_.attributes(); }
  std::span<const int> updates() const override { return first_inputs(1); }

  const LambUpdateOp& whole() const { return whole_; }

 private:
  LambUpdateOp whole_;
};

}  // namespace vitrail
