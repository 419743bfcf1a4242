#include "optim/recorders.h"

#include "base/text.h"
#include "ops/update/adam.h"
#include "ops/update/lamb.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail {

namespace {

void record_sgd(UpdateSite& site) {
  const OptimConfig& c = site.config();
  std::vector<ValueId> states;
  if (c.momentum > 0) states.push_back(site.first_moment());
  site.add(std::make_shared<SgdUpdateOp>(site.scale(), c.momentum, c.nesterov), states);
}

void record_adam(UpdateSite& site) {
  const OptimConfig& c = site.config();
  site.add(std::make_shared<AdamUpdateOp>(site.scale(), Moments{c.beta1, c.beta2, c.eps}),
           {site.first_moment(), site.state("v")});
}

void record_lamb(UpdateSite& site) {
  const OptimConfig& c = site.config();
  const bool adapts = c.adapt_all || site.scale().weight_decay != 0;
  site.add(std::make_shared<LambUpdateOp>(site.scale(), Moments{c.beta1, c.beta2, c.eps}, adapts),
           {site.first_moment(), site.state("v")});
}

void record_lion(UpdateSite& site) {
  const OptimConfig& c = site.config();
  site.add(std::make_shared<LionUpdateOp>(site.scale(), c.beta1, c.beta2), {site.first_moment()});
}

constexpr Optimizer kOptimizers[] = {
    {"sgd", record_sgd, DecayStyle::kCoupled, 0, 0, 0},
    {"adam", record_adam, DecayStyle::kCoupled, 0.9, 0.999, 1e-8},
    {"adamw", record_adam, DecayStyle::kDecoupled, 0.9, 0.999, 1e-8},
    {"lamb", record_lamb, DecayStyle::kCoupled, 0.9, 0.999, 1e-6, true},
    {"lion", record_lion, DecayStyle::kDecoupled, 0.9, 0.99, 0},
};

}  // namespace

const Optimizer& find_optimizer(const std::string& name) {
  std::vector<std::string> names;
  std::string known;
  for (const Optimizer& row : kOptimizers) {
    if (name == row.name) return row;
    names.emplace_back(row.name);
    known += std::string(known.empty() ? "" : ", ") + row.name;
  }
  const std::string near = nearest_name(name, names);
  throw Error(ErrorKind::kConfig,
              strf("optim.name is %s; expected one of %s", quoted(name).c_str(), known.c_str()),
              near.empty() ? "" : near);
}

}  // namespace vitrail
