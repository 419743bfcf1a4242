// How the failure of a rank reaches the watch of its job: as its own, or as one of an exchange, which another
// rank may have caused.
#include <gtest/gtest.h>

#include <thread>

#include "dist/liveness/heartbeat.h"
#include "dist/liveness/watch.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

void fail_second_rank(liveness::Heartbeat& heartbeat, ErrorKind kind) {
  run_ranks({.worlds = thread_communicators(2),
             .mesh = resolved(MeshConfig{}, 2),
             .device = [](int) { return cpu_device(1); },
             .sharing = 2,
             .heartbeat = &heartbeat},
            [&](RankContext& rank) {
              if (rank.ranks->world().rank() == 1) throw Error(kind, "it went wrong");
            });
}

// The watch waits a moment for a better reason than a failed exchange.
TEST(BlameRanks, OnlyAFailedExchangeMayBeTheFaultOfOthers) {
  for (const ErrorKind kind : {ErrorKind::kData, ErrorKind::kComm}) {
    SCOPED_TRACE(exit_code(kind));
    liveness::Watch watch({.ranks = 2});
    liveness::Heartbeat heartbeat({.address = watch.address(), .count = 2, .ranks = 2});
    std::thread ranks([&] { EXPECT_THROW(fail_second_rank(heartbeat, kind), Error); });
    for (int turns = 0; turns < 3000 && !watch.table().rows()[1].left; ++turns) watch.turn(10);
    EXPECT_TRUE(watch.table().rows()[1].left);
    EXPECT_EQ(watch.verdict().has_value(), kind == ErrorKind::kData);
    if (watch.verdict()) {
      EXPECT_EQ(watch.verdict()->rank, 1);
      EXPECT_EQ(watch.verdict()->code, exit_code(kind));
    }
    ranks.join();
  }
}

}  // namespace
}  // namespace vitrail::testing
