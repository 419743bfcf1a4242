// Records the activations of a config. It knows no place in the model.
#pragma once

#include "graph/builder.h"
#include "models/vit_config.h"
#include "ops/activate.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"

namespace vitrail {

// The node is called as the activation; `where` is the caller's line, which a report should name.
inline ValueId add_activation(Builder& b, ValueId x, ActKind act, GeluKind gelu,
                              ModelStep step = ModelStep::kNone, SourceLine where = SourceLine::here()) {
  const NodeName name(enum_name(act), step, where);
  if (act == ActKind::kGelu) return b.add<GeluOp>({x}, name, gelu == GeluKind::kTanh);
  if (act == ActKind::kTanh) return b.add<TanhOp>({x}, name);
  return b.add<ActivateOp>({x}, name, act);
}

}  // namespace vitrail
