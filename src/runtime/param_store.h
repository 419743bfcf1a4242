// The persistent values of an execution plan: owns their arena and fills it through a load-time Program that
// converts or packs one parameter at a time, so that a source needs memory for its largest tensor only.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "plan/kernel_choice.h"
#include "runtime/rank_context.h"

namespace vitrail {

// Fills a parameter's f32 values, row-major in `shape`.
using ParamFiller = std::function<void(const std::string& name, const Shape& shape, std::span<float> target)>;

class ParamStore {
 public:
  ParamStore(const ExecutionPlan& plan, RankContext& rank);

  void load(const ParamFiller& fill);

  TensorView view(ValueId id) const;
  size_t bytes() const { return arena_.bytes(); }

 private:
  const ExecutionPlan& plan_;
  RankContext& rank_;
  Buffer arena_;
};

}  // namespace vitrail
