// Every case of the suite over the transports that need no launcher.
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
}  // namespace

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

}  // namespace vitrail
