// Memory of drawn training steps: what is planned is allocated, to the byte, on every rank. 30 draws; 300
// with VITRAIL_TEST_LONG in the environment. A draw follows from its number alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/rng.h"
#include "mesh_run.h"
#include "optim/optimizer.h"

namespace vitrail {
namespace {

// Choices of one draw, one after the other.
class Draw {
 public:
  explicit Draw(uint64_t number) : key_(number) {}

  template <typename T>
  T of(const std::vector<T>& choices) {
    return choices[counter_hash(0x9e3779b9u + key_, next_++) % choices.size()];
  }

 private:
  uint64_t key_, next_ = 0;
};

struct DrawnStep {
  MeshCase run;
  std::string text;
};

DrawnStep drawn(uint64_t number) {
  Draw draw(number);
  const auto mesh = draw.of<std::array<int, kAxisCount>>({{1, 1, 1, 1},
                                                          {2, 1, 1, 1},
                                                          {3, 1, 1, 1},
                                                          {4, 1, 1, 1},
                                                          {1, 2, 1, 1},
                                                          {1, 3, 1, 1},
                                                          {2, 2, 1, 1},
                                                          {1, 1, 2, 1},
                                                          {2, 1, 2, 1},
                                                          {1, 2, 2, 1},
                                                          {1, 1, 1, 2},
                                                          {2, 1, 1, 2}});
  const bool pipeline = mesh[3] > 1, sharded = mesh[0] > 1;
  const auto heads = draw.of<int64_t>({6, 12}), head = draw.of<int64_t>({4, 8, 16});
  const auto depth = draw.of<int64_t>({2, 3, 4}), ratio = draw.of<int64_t>({2, 3, 4});
  const auto patch = draw.of<int64_t>({4, 8}), side = draw.of<int64_t>({2, 3, 5, 7});
  const auto classes = draw.of<int64_t>({2, 10, 37});
  const auto accumulation = draw.of<int64_t>({1, 2, 3}), micro = draw.of<int64_t>({8, 10, 16});
  const auto dtype = draw.of<DType>({DType::kF32, DType::kBF16, DType::kF16});
  const auto low_residual = draw.of<int>({0, 1});
  const auto optimizer = draw.of<std::string>(optimizer_names());
  const auto moment = draw.of<MomentDType>({MomentDType::kMaster, MomentDType::kBF16});
  const auto level =
      draw.of<Recompute>({Recompute::kNone, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock});
  const auto zero =
      sharded ? draw.of<int>(pipeline ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2, 3}) : 0;
  const auto whole = draw.of<int>({0, 1});
  const auto change = [=](StepConfig& step) {
    VitConfig& m = step.model;
    m.heads = heads, m.width = heads * head, m.depth = depth, m.mlp = ratio * m.width;
    m.patch = patch, m.image_height = m.image_width = patch * side, m.classes = classes;
    step.precision.compute = dtype, step.precision.residual = low_residual ? dtype : DType::kF32;
    step.optim.name = optimizer, step.optim.moment_dtype = moment;
    step.recompute = {level, 1};
    step.zero = zero, step.whole_sums = zero >= 2 && whole == 1;
  };
  return {{.name = "drawn",
           .mesh = mesh,
           .change = change,
           .accumulation = accumulation,
           .batch = micro * accumulation},
          strf("draw %d: %s, %lld wide, %lld deep, %lld px, %s, %s, recompute %s, ZeRO %d, %lld x %lld",
               static_cast<int>(number), to_string(Mesh{mesh}).c_str(), static_cast<long long>(heads * head),
               static_cast<long long>(depth), static_cast<long long>(patch * side), to_string(dtype),
               optimizer.c_str(), enum_name(level), zero, static_cast<long long>(accumulation),
               static_cast<long long>(micro))};
}

TEST(RandomMemory, PlannedIsAllocatedToTheByte) {
  const uint64_t draws = std::getenv("VITRAIL_TEST_LONG") ? 300 : 30;
  size_t ranks = 0;
  for (uint64_t number = 0; number < draws; ++number) {
    const DrawnStep step = drawn(number);
    SCOPED_TRACE(step.text);
    const MeshOutcome outcome = run_mesh(step.run, DType::kF32, 1);
    ASSERT_FALSE(HasFailure());
    for (size_t rank = 0; rank < outcome.planned.size(); ++rank, ++ranks) {
      EXPECT_GT(outcome.planned[rank], 0u);
      EXPECT_EQ(outcome.planned[rank], outcome.allocated[rank]) << "rank " << rank;
    }
  }
  RecordProperty("ranks", static_cast<int>(ranks));
}

}  // namespace
}  // namespace vitrail
