// A block's MLP as one node with its GEMMs in fp8: norm, linear, bias, gelu, linear, bias, residual.
#pragma once

#include "op_cases.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"

namespace vitrail {

inline OpPtr joined(std::vector<FusedOp::Member> members) {
  return std::make_shared<FusedOp>(std::move(members));
}

inline const FusedOp::Member kNorm{make_op<LayernormOp>(1e-6), {0, 1, 2}};

inline OpCase mlp_case(const char* name, const Shape& rows, const Dim& width, const Dim& inner) {
  const OpPtr linear = make_op<LinearOp>(Arithmetic::kFp8), bias = make_op<BiasOp>();
  const auto vector = Role::kVector, plain = Role::kPlain;
  return {name,
          joined({kNorm,
                  {linear, {made_by(0), 3}},
                  {bias, {made_by(1), 4}},
                  {make_op<GeluOp>(false), {made_by(2)}},
                  {linear, {made_by(3), 5}},
                  {bias, {made_by(4), 6}},
                  {make_op<AddOp>(), {7, made_by(5)}}}),
          {rows, {width}, {width}, {inner, width}, {inner}, {width, inner}, {width}, rows},
          {false, true, true, true, true, true, true, false},
          {plain, vector, vector, plain, vector, plain, vector, Role::kSum}};
}

}  // namespace vitrail
