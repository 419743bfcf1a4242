// The cases of the suite as one rank that mpirun started runs them; --abort, --throw and --differ show that a
// rank that fails ends by itself, whatever the others wait for.
#include <cstdio>
#include <string>
#include <thread>

#include "base/error.h"
#include "dist/mpi_world.h"
#include "ranks.h"

namespace vitrail {

namespace {
Communicator* world = nullptr;

class OverMpi : public testing::TestWithParam<Case> {};

TEST_P(OverMpi, Run) {
  GetParam().body(*world);
}
INSTANTIATE_TEST_SUITE_P(All, OverMpi, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

TEST(OverMpi, IsMpi) {
  EXPECT_STREQ(world->transport(), "mpi");
  EXPECT_GT(world->size(), 1);
}

// All ranks of the test are on this host, and each has a place of its own there.
TEST(OverMpi, KnowsTheRanksOfThisHost) {
  const HostPlace place = mpi_host_place();
  EXPECT_EQ(place.size, world->size());
  std::vector<int32_t> places(static_cast<size_t>(world->size()));
  const int32_t own = place.rank;
  world->run({.kind = Collective::Kind::kAllGather,
              .dtype = DType::kI32,
              .in = &own,
              .out = places.data(),
              .counts = std::vector<size_t>(places.size(), 1)});
  for (size_t r = 0; r < places.size(); ++r) EXPECT_EQ(places[r], static_cast<int32_t>(r));
}

// Rank 1 adds another number of elements: whoever gets a message of another size than it expects says so.
void one_differs(Communicator& comm) {
  std::vector<float> values(comm.rank() == 1 ? 11 : 10);
  comm.run({.kind = Collective::Kind::kAllReduce,
            .in = values.data(),
            .out = values.data(),
            .counts = {values.size()}});
}

void one_fails(Communicator& comm, bool aborts) {
  std::vector<float> values(100000);
  const auto pending = comm.start({.kind = Collective::Kind::kAllReduce,
                                   .in = values.data(),
                                   .out = values.data(),
                                   .counts = {values.size()}});
  if (comm.rank() != 1) pending->wait();
  if (!aborts) throw Error(ErrorKind::kData, "bad data");
  std::thread watcher([&] { comm.abort("the disk is full"); });
  watcher.join();
  for (;;) comm.barrier();
}

int fail_on_purpose(const std::string& how) {
  int rank = -1;
  try {
    const auto comm = mpi_world();
    rank = comm->rank();
    if (how == "--differ") one_differs(*comm);
    one_fails(*comm, how == "--abort");
  } catch (const Error& error) {
    std::printf("rank %d ended by: %s\n", rank, error.what());
    std::fflush(stdout);
    return 1;
  }
  return 0;
}
}  // namespace

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

}  // namespace vitrail

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return vitrail::fail_on_purpose(argv[1]);
  try {
    const auto comm = vitrail::mpi_world();
    vitrail::world = comm.get();
    return RUN_ALL_TESTS();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
