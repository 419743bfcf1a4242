// Sets a lower-precision arithmetic for the linears of the encoder blocks (qkv, proj, fc1, fc2), which take
// most of a ViT's time. The patch embedding, pooling, the head and adapters stay exact: they cost little and
// accuracy depends on them. Runs before fuse; in training before differentiate, which passes it on to the
// gradients.
#pragma once

#include "graph/program.h"
#include "ops/linear.h"

namespace vitrail {

Program reduce_products(Program program, Arithmetic arithmetic);

}  // namespace vitrail
