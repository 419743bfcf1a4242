// Every case of the suite over the transports that need no launcher.
#include "base/thread_pool.h"
#include "ranks.h"

namespace vitrail {

namespace {
class Collectives : public testing::TestWithParam<std::tuple<Case, int>> {};

std::string name_of(const testing::TestParamInfo<std::tuple<Case, int>>& info) {
  const auto& [one, size] = info.param;
  return one.name + (size == 0 ? "_self" : "_threads" + std::to_string(size));
}

TEST_P(Collectives, Run) {
  const auto& [one, size] = GetParam();
  if (size == 0)
    one.body(*self_communicator());
  else
    run_on_threads(size, one.body);
}

// 0 stands for the transport `self`.
INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         testing::Combine(testing::ValuesIn(all_cases()), testing::Values(0, 1, 2, 3, 4, 8)),
                         name_of);

// The threads of a rank share its part of a sum: the same bits, whatever their number.
TEST(ThreadRanks, HelpersOfARankChangeNoBit) {
  constexpr size_t kCount = 200003;
  std::vector<std::vector<float>> sums(2);
  for (const int threads : {1, 3})
    run_on_threads(3, [&](Communicator& ranks) {
      ThreadPool pool(threads);
      std::vector<float> values(kCount);
      for (size_t i = 0; i < kCount; ++i)
        values[i] = 1.0f / static_cast<float>(i + 1) + static_cast<float>(ranks.rank()) * 0.37f;
      ranks.run({.kind = Collective::Kind::kAllReduce,
                 .in = values.data(),
                 .out = values.data(),
                 .counts = {kCount},
                 .pool = &pool});
      for (size_t i = 0; i < kCount; ++i)
        ASSERT_NEAR(values[i], 3.0f / static_cast<float>(i + 1) + 1.11f, 1e-6f) << i;
      if (ranks.rank() == 2) sums[threads > 1] = values;
    });
  EXPECT_EQ(sums[0], sums[1]);
}
}  // namespace

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

}  // namespace vitrail
