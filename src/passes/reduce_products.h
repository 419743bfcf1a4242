// Lets the products of the encoder blocks (qkv, proj, fc1, fc2) compute in bf16 or int8, which is where the
// time of a ViT goes. The patch embedding, pooling and the head stay exact: they cost little and the answer
// hangs on them. For inference, before fuse.
#pragma once

#include "graph/program.h"
#include "ops/linear.h"

namespace vitrail {

Program reduce_products(Program program, Arithmetic arithmetic);

}  // namespace vitrail
