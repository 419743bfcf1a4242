// The table of optimizers.
#include "optim/recorders.h"

#include "base/text.h"
#include "base/values.h"
#include "ops/update/adam.h"
#include "ops/update/lamb.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail {

namespace {

template <typename UpdateOp>
void record(UpdateSite& site) {
  const OptimConfig& c = site.config();
  const auto op = std::make_shared<UpdateOp>(
      site.scale(), UpdateSettings{c.momentum, c.nesterov, c.beta1, c.beta2, c.eps, c.adapt_all,
                                   c.bias_correction, c.trust_min, c.trust_max});
  std::vector<ValueId> states;
  if (op->states() > 0) states.push_back(site.first_moment());
  if (op->states() > 1) states.push_back(site.state("v"));
  site.add(op, states);
}

constexpr Optimizer kOptimizers[] = {
    {"sgd", record<SgdUpdateOp>, DecayStyle::kCoupled, 0, 0, 0},
    {"adam", record<AdamUpdateOp>, DecayStyle::kCoupled, 0.9, 0.999, 1e-8},
    {"adamw", record<AdamUpdateOp>, DecayStyle::kDecoupled, 0.9, 0.999, 1e-8},
    {"lamb", record<LambUpdateOp>, DecayStyle::kCoupled, 0.9, 0.999, 1e-6, true, true},
    {"lion", record<LionUpdateOp>, DecayStyle::kDecoupled, 0.9, 0.99, 0},
};

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

const char* optimizer_names_text() {
  static const std::string text = [] {
    std::vector<std::string> names = optimizer_names();
    const std::string last = std::move(names.back());
    names.pop_back();
    return join(names, ", ") + " or " + last;
  }();
  return text.c_str();
}

const Optimizer& find_optimizer(const std::string& name) {
  for (const Optimizer& row : kOptimizers)
    if (name == row.name) return row;
  const std::vector<std::string> names = optimizer_names();
  throw Error(ErrorKind::kConfig,
              strf("optim.name is %s; expected one of %s", quoted(name).c_str(), join(names, ", ").c_str()),
              nearest_name(name, names));
}

}  // namespace vitrail
