#include "base/text.h"
#include "optim/recorders.h"

namespace vitrail {

namespace {

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
