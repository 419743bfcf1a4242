// Which ranks are left of a job when one does not come back.
#include <gtest/gtest.h>

#include "launch/launched_job.h"

namespace vitrail {
namespace {

using Ranks = std::vector<int>;

TEST(RanksLeft, AHostGoesWithAllItsRanks) {
  const RanksLeft left = ranks_without(3, hosts_from("vt1:2,vt2:2"), {"vt1", "vt1", "vt2", "vt2"});
  EXPECT_EQ(left.ranks, (Ranks{0, 1}));
  EXPECT_EQ(left.hosts.text, "vt1:2");
  const RanksLeft first = ranks_without(0, hosts_from("vt1:1,vt2:2,vt3"), {"vt1", "vt2", "vt2", "vt3"});
  EXPECT_EQ(first.ranks, (Ranks{1, 2, 3}));
  EXPECT_EQ(first.hosts.text, "vt2:2,vt3:1");
}

TEST(RanksLeft, NamesThatRanksGiveAreSurerThanTheOrder) {
  EXPECT_EQ(ranks_without(1, hosts_from("vt1:2,vt2:2"), {"vt1", "vt2", "vt1", "vt2"}).ranks, (Ranks{0, 2}));
  EXPECT_EQ(ranks_without(0, hosts_from("vt1.local:1,vt2.local:1"), {"vt1", "vt2"}).hosts.text,
            "vt2.local:1");
  // Either side may leave the domain out, and the order says otherwise.
  EXPECT_EQ(ranks_without(0, hosts_from("vt1.local:1,vt2.local:1"), {"vt2", "vt1"}).hosts.text,
            "vt1.local:1");
  EXPECT_EQ(ranks_without(0, hosts_from("vt1:1,vt2:1"), {"vt2.local", "vt1.local"}).hosts.text, "vt1:1");
  // Ranks that never came, or have other names, are where mpirun puts them.
  EXPECT_EQ(ranks_without(2, hosts_from("10.0.0.1:2,10.0.0.2:2"), {"a", "a", "", ""}).ranks, (Ranks{0, 1}));
}

TEST(RanksLeft, OnOneHostARankGoesAlone) {
  EXPECT_EQ(ranks_without(1, hosts_from(""), {"vm", "vm", "vm"}).ranks, (Ranks{0, 2}));
  EXPECT_TRUE(ranks_without(0, hosts_from(""), {"vm"}).ranks.empty());
  EXPECT_TRUE(ranks_without(-1, hosts_from(""), {"vm", "vm"}).ranks.empty());
  EXPECT_TRUE(ranks_without(0, hosts_from("vt1:2"), {"vt1", "vt1"}).ranks.empty());
}

}  // namespace
}  // namespace vitrail
