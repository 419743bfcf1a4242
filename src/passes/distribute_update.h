// Rewrites a program that only changes persistent values (an optimizer's update, the refresh of copies) into
// that of one rank: every value becomes the rank's part of it, with ZeRO the range of elements that it owns,
// and what was updated in pieces is gathered at the end. The norm of all gradients counts each parameter once:
// a rank adds up the squares of what it alone owns, and of what several hold alike the first of them.
#pragma once

#include "passes/flat_groups.h"

namespace vitrail {

Program distribute_update(const Program& recorded, const Distribution& how, const std::vector<Bucket>& buckets,
                          const ZeroPlan& zero);

}  // namespace vitrail
