#include "ops/update_adam.h"

#include "optim/recorders.h"

namespace vitrail {

void record_adam(UpdateSite& site) {
  const OptimConfig& c = site.config();
  site.add(std::make_shared<AdamUpdateOp>(site.scale(), Moments{c.beta1, c.beta2, c.eps}),
           {site.first_moment(), site.state("v")});
}

}  // namespace vitrail
