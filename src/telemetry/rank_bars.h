// The ranks of a run on its page: a stacked bar each of compute, communication, imbalance and the wait for
// data, then collectives by kind and the start by phase. Knows no run.
#pragma once

#include "telemetry/page.h"
#include "telemetry/rank_times.h"

namespace vitrail {

// Adds nothing where nothing was measured.
void add_ranks(Page& page, const RankHistory& history);

}  // namespace vitrail
