// The data that lies on the device beside a step which makes its own pictures. Used by the trainer and by
// `bench train`; which form pictures have was decided when the run was set up.
#pragma once

#include "train/run_setup.h"
#include "train/train_step.h"

namespace vitrail {

// Once, before the first micro-batch: the levels and, where all pictures are kept there, those. Nothing for a
// step that takes floats.
void bring_pictures(const RunSetup& setup, const TrainStep& step);

}  // namespace vitrail
