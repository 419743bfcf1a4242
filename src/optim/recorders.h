// The optimizers: their table, and how each records the update of one parameter. Private to optim/: adding
// one is its op and a row in optimizers.cpp.
#pragma once

#include "optim/optimizer.h"

namespace vitrail {

// The recorder's view of one parameter to update.
class UpdateSite {
 public:
  UpdateSite(Builder& builder, const TrainedParam& param, const OptimConfig& config, ValueId control);

  const OptimConfig& config() const { return config_; }
  UpdateScale scale() const;
  // Records optim/P/suffix in the parameter's own type, or as the config stores first moments.
  ValueId state(const char* suffix) { return state(suffix, param_.desc.dtype); }
  ValueId first_moment();
  void add(OpPtr op, const std::vector<ValueId>& states);

 private:
  ValueId state(const char* suffix, DType dtype);

  Builder& builder_;
  const TrainedParam& param_;
  const OptimConfig& config_;
  ValueId control_;
};

// An optimizer: how it records an update, and its usual settings.
struct Optimizer {
  const char* name;
  void (*record)(UpdateSite&);
  DecayStyle decay;
  double beta1, beta2, eps;
  bool own_decay = false;    // the decay is part of the update's formula and not an option
  bool whole_norms = false;  // it needs norms of whole parameters, which cross ranks that share them
};

// Throws Error(kConfig) naming the known optimizers when there is none of this name.
const Optimizer& find_optimizer(const std::string& name);

}  // namespace vitrail
