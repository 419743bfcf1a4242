// From gradient sums to new weights: records the update Program of a step. An optimizer is an op of
// ops/update/ and its row in the table of optimizers.cpp. Must not know how anything runs.
//
// Persistent values (the parameters keep their names):
//   grad/P            the gradient sum of P, P's type; zeroed by every update, skipped or not
//   optim/P/m, /v     optimizer state, zero at the start
//   ema/P             the moving average, equal to P at the start
//   optim/loss_scale  f64 [Z1], LossScaleRule::initial at the start; the loss is multiplied by it
//   optim/control     f64 [Z4], UpdateCounter, zero at the start
// Input "hyper" (HyperSlot), output "control" (StepValues).
#pragma once

#include <vector>

#include "graph/builder.h"
#include "graph/grad.h"
#include "optim/optim_config.h"

namespace vitrail {

struct TrainedParam {
  std::string name;
  TensorDesc desc;
  double lr_scale = 1;
  double weight_decay = 0;
};

inline constexpr const char* kLossScaleState = "optim/loss_scale";
inline constexpr const char* kUpdateCounterState = "optim/control";
inline constexpr const char* kPassedOverflowState = "optim/overflows";  // with a hysteresis
std::string ema_name(const std::string& param);
TensorDesc loss_scale_desc();

void record_update(Builder& builder, const std::vector<TrainedParam>& params, const OptimConfig& config,
                   const LossScaleRule& loss_scale = {});

}  // namespace vitrail
