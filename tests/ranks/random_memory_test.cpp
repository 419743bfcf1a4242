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

using MeshSizes = std::array<int, kAxisCount>;
const std::vector<MeshSizes> kMeshes = {{1, 1, 1, 1}, {2, 1, 1, 1}, {3, 1, 1, 1}, {4, 1, 1, 1},
                                        {1, 2, 1, 1}, {1, 3, 1, 1}, {2, 2, 1, 1}, {1, 1, 2, 1},
                                        {2, 1, 2, 1}, {1, 2, 2, 1}, {1, 1, 1, 2}, {2, 1, 1, 2}};

VitConfig drawn_model(Draw& draw) {
  VitConfig m = usual_step(DType::kF32).model;
  m.heads = draw.of<int64_t>({6, 12}), m.width = m.heads * draw.of<int64_t>({4, 8, 16});
  m.depth = draw.of<int64_t>({2, 3, 4}), m.mlp = m.width * draw.of<int64_t>({2, 3, 4});
  m.patch = draw.of<int64_t>({4, 8});
  m.image_height = m.image_width = m.patch * draw.of<int64_t>({2, 3, 5, 7});
  m.classes = draw.of<int64_t>({2, 10, 37});
  return m;
}

// How a step computes, and what each rank keeps of it.
void draw_step(Draw& draw, const MeshSizes& mesh, StepConfig& step) {
  step.precision.compute = draw.of<DType>({DType::kF32, DType::kBF16, DType::kF16});
  step.precision.residual = draw.of<int>({0, 1}) ? step.precision.compute : DType::kF32;
  step.optim.name = draw.of(optimizer_names());
  step.optim.moment_dtype = draw.of<MomentDType>({MomentDType::kMaster, MomentDType::kBF16});
  step.recompute.level =
      draw.of<Recompute>({Recompute::kNone, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock});
  // A pipeline keeps gradients and parameters whole.
  if (mesh[0] > 1) step.zero = draw.of<int>(mesh[3] > 1 ? std::vector{0, 1} : std::vector{0, 1, 2, 3});
  step.whole_sums = step.zero >= 2 && draw.of<int>({0, 1}) == 1;
}

DrawnStep drawn(uint64_t number) {
  Draw draw(number);
  const MeshSizes mesh = draw.of(kMeshes);
  const VitConfig model = drawn_model(draw);
  const auto accumulation = draw.of<int64_t>({1, 2, 3}), micro = draw.of<int64_t>({8, 10, 16});
  StepConfig step = usual_step(DType::kF32);
  step.model = model;
  draw_step(draw, mesh, step);
  const std::string text =
      strf("draw %d: %s, %lld wide, %lld deep, %lld px, %s, %s, recompute %s, ZeRO %d, %lld x %lld images",
           static_cast<int>(number), to_string(Mesh{mesh}).c_str(), static_cast<long long>(model.width),
           static_cast<long long>(model.depth), static_cast<long long>(model.image_height),
           to_string(step.precision.compute), step.optim.name.c_str(), enum_name(step.recompute.level),
           step.zero, static_cast<long long>(accumulation), static_cast<long long>(micro));
  return {{.name = "drawn",
           .mesh = mesh,
           .change = [step](StepConfig& usual) { usual = step; },
           .accumulation = accumulation,
           .batch = micro * accumulation},
          text};
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
