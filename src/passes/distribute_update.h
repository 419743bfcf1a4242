// Rewrites a program that only changes persistent values (an optimizer's update, the refresh of copies) into
// that of one rank: every value becomes the rank's part of it. The norm of all gradients counts each parameter
// once: a rank adds up the squares of what it alone holds, and of what is replicated along an axis the first
// rank of that axis.
#pragma once

#include "passes/buckets.h"

namespace vitrail {

Program distribute_update(const Program& recorded, const Distribution& how, const std::vector<Bucket>& buckets);

}  // namespace vitrail
