#include "ops/update_lion.h"

#include "optim/recorders.h"

namespace vitrail {

void record_lion(UpdateSite& site) {
  const OptimConfig& c = site.config();
  site.add(std::make_shared<LionUpdateOp>(site.scale(), c.beta1, c.beta2), {site.first_moment()});
}

}  // namespace vitrail
