#include "ops/update_lamb.h"

#include "optim/recorders.h"

namespace vitrail {

void record_lamb(UpdateSite& site) {
  const OptimConfig& c = site.config();
  const bool adapts = c.adapt_all || site.scale().weight_decay != 0;
  site.add(std::make_shared<LambUpdateOp>(site.scale(), Moments{c.beta1, c.beta2, c.eps}, adapts),
           {site.first_moment(), site.state("v")});
}

}  // namespace vitrail
