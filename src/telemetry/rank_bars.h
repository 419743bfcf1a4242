// The ranks of a run on its page: a stacked bar each of compute, communication, imbalance and the wait for
// data, then collectives by kind and the start by phase. Knows no run.
#pragma once

#include <string>

#include "telemetry/rank_times.h"

namespace vitrail {

// Returns HTML; empty where nothing was measured.
std::string rank_section(const RankHistory& history);

}  // namespace vitrail
