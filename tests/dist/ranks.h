// The transports that the suite runs over: each calls a test's body once a rank. A case is written as one
// rank sees it and knows neither its transport nor whether the other ranks are threads or processes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace vitrail {

using RankBody = std::function<void(Communicator&)>;

struct Case {
  std::string name;
  RankBody body;
};
std::vector<Case> sum_cases();
std::vector<Case> move_cases();
std::vector<Case> group_cases();
std::vector<Case> all_cases();

// Calls `body` on `size` rank threads; an exception of one rank ends all of them and is a failure.
void run_on_threads(int size, const RankBody& body);

}  // namespace vitrail
