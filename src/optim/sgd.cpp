#include "ops/update_sgd.h"

#include "optim/recorders.h"

namespace vitrail {

void record_sgd(UpdateSite& site) {
  const OptimConfig& c = site.config();
  std::vector<ValueId> states;
  if (c.momentum > 0) states.push_back(site.first_moment());
  site.add(std::make_shared<SgdUpdateOp>(site.scale(), c.momentum, c.nesterov), states);
}

}  // namespace vitrail
