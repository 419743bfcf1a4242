// Lets the products of the encoder blocks (qkv, proj, fc1, fc2) compute in another arithmetic, which is where
// the time of a ViT goes. The patch embedding, pooling, the head and adapters stay exact: they cost little
// and the answer hangs on them. Before fuse; of training, before differentiate, which hands it to the
// gradients.
#pragma once

#include "graph/program.h"
#include "ops/linear.h"

namespace vitrail {

Program reduce_products(Program program, Arithmetic arithmetic);

}  // namespace vitrail
