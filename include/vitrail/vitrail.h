/// \file
/// libvitrail: run and train Vision Transformers from C++. This header brings in all others.
/// - vitrail/model.h: load a model, then classify, embed, logits, attention; streams of files
/// - vitrail/image.h: images as files, encoded bytes, pixels or tensors
/// - vitrail/plan.h: memory and time before anything is loaded
/// - vitrail/train.h: training from a config, with callbacks
/// - vitrail/error.h: the one exception, with its kind
/// docs/api.md has an example of each.
#pragma once

#include "vitrail/error.h"
#include "vitrail/export.h"
#include "vitrail/image.h"
#include "vitrail/model.h"
#include "vitrail/plan.h"
#include "vitrail/train.h"
#include "vitrail/version.h"
