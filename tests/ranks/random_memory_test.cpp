// Memory of drawn training steps: what is planned is allocated, to the byte, on every rank. On processors 30
// draws, 300 with VITRAIL_TEST_LONG in the environment; on a GPU 100. A draw follows from its number alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/rng.h"
#include "cuda_test.h"
#include "gpu_mesh.h"
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

// Choices that a processor and a GPU have apart. A GPU runs no pipeline.
struct Choices {
  std::vector<MeshSizes> meshes;
  std::vector<int64_t> head_sizes;
  std::vector<std::pair<DType, Arithmetic>> types;
};

Choices on_processors() {
  return {kMeshes,
          {4, 8, 16},
          {{DType::kF32, Arithmetic::kExact},
           {DType::kBF16, Arithmetic::kExact},
           {DType::kF16, Arithmetic::kExact}}};
}

Choices on_one_gpu() {
  Choices choices = on_processors();
  std::erase_if(choices.meshes, [](const MeshSizes& mesh) { return mesh[3] > 1; });
  choices.head_sizes = {16, 32, 64};
  choices.types.insert(choices.types.end(),
                       {{DType::kF32, Arithmetic::kTF32}, {DType::kBF16, Arithmetic::kFp8}});
  return choices;
}

VitConfig drawn_model(Draw& draw, const Choices& choices) {
  VitConfig m = usual_step(DType::kF32).model;
  m.heads = draw.of<int64_t>({6, 12}), m.width = m.heads * draw.of(choices.head_sizes);
  m.depth = draw.of<int64_t>({2, 3, 4}), m.mlp = m.width * draw.of<int64_t>({2, 3, 4});
  m.patch = draw.of<int64_t>({4, 8});
  m.image_height = m.image_width = m.patch * draw.of<int64_t>({2, 3, 5, 7});
  m.classes = draw.of<int64_t>({2, 10, 37});
  return m;
}

// How a step computes, and what each rank keeps of it.
void draw_step(Draw& draw, const Choices& choices, const MeshSizes& mesh, StepConfig& step) {
  std::tie(step.precision.compute, step.arithmetic) = draw.of(choices.types);
  step.precision.residual = draw.of<int>({0, 1}) ? step.precision.compute : DType::kF32;
  step.optim.name = draw.of(optimizer_names());
  step.optim.moment_dtype = draw.of<MomentDType>({MomentDType::kMaster, MomentDType::kBF16});
  step.recompute.level = draw.of<Recompute>(
      {Recompute::kNone, Recompute::kNorms, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock});
  // A pipeline keeps gradients and parameters whole.
  if (mesh[0] > 1) step.zero = draw.of<int>(mesh[3] > 1 ? std::vector{0, 1} : std::vector{0, 1, 2, 3});
  step.whole_sums = step.zero >= 2 && draw.of<int>({0, 1}) == 1;
}

DrawnStep drawn(uint64_t number, const Choices& choices) {
  Draw draw(number);
  const MeshSizes mesh = draw.of(choices.meshes);
  const VitConfig model = drawn_model(draw, choices);
  const auto accumulation = draw.of<int64_t>({1, 2, 3}), micro = draw.of<int64_t>({8, 10, 16});
  StepConfig step = usual_step(DType::kF32);
  step.model = model;
  draw_step(draw, choices, mesh, step);
  const std::string text = strf(
      "draw %d: %s, %lld wide, %lld deep, %lld px, %s, %s, %s, recompute %s, ZeRO %d, %lld x %lld images",
      static_cast<int>(number), to_string(Mesh{mesh}).c_str(), static_cast<long long>(model.width),
      static_cast<long long>(model.depth), static_cast<long long>(model.image_height),
      to_string(step.precision.compute), enum_name(step.arithmetic), step.optim.name.c_str(),
      enum_name(step.recompute.level), step.zero, static_cast<long long>(accumulation),
      static_cast<long long>(micro));
  return {{.name = "drawn",
           .mesh = mesh,
           .change = [step](StepConfig& usual) { usual = step; },
           .accumulation = accumulation,
           .batch = micro * accumulation},
          text};
}

struct DrawCounts {
  int draws = 0, ranks = 0, off = 0;

  DrawCounts() = default;
  DrawCounts(const DrawCounts&) = delete;
  DrawCounts& operator=(const DrawCounts&) = delete;
  // Counts are read by bench/random_memory.py.
  ~DrawCounts() {
    ::testing::Test::RecordProperty("draws", draws);
    ::testing::Test::RecordProperty("ranks", ranks);
    ::testing::Test::RecordProperty("off", off);
  }
};

bool is_as_planned(const MeshOutcome& outcome, size_t rank, bool locks) {
  const bool same = outcome.planned[rank] > 0 && outcome.planned[rank] == outcome.allocated[rank];
  return same && (!locks || outcome.planned_locked[rank] == outcome.locked[rank]);
}

void expect_as_planned(const DrawnStep& step, const MeshDevices& devices, DrawCounts& counts) {
  SCOPED_TRACE(step.text);
  const MeshOutcome outcome = run_mesh(step.run, DType::kF32, 1, devices);
  ASSERT_FALSE(outcome.planned.empty());
  bool is_off = false;
  for (size_t rank = 0; rank < outcome.planned.size(); ++rank) {
    const bool as_planned = is_as_planned(outcome, rank, devices.join != nullptr);
    EXPECT_TRUE(as_planned) << "rank " << rank << ": " << outcome.planned[rank] << " bytes planned, "
                            << outcome.allocated[rank] << " allocated";
    is_off = is_off || !as_planned;
  }
  counts.draws += 1;
  counts.ranks += static_cast<int>(outcome.planned.size());
  counts.off += is_off ? 1 : 0;
}

TEST(RandomMemory, PlannedIsAllocatedToTheByte) {
  const uint64_t draws = std::getenv("VITRAIL_TEST_LONG") ? 300 : 30;
  DrawCounts counts;
  for (uint64_t number = 0; number < draws; ++number)
    ASSERT_NO_FATAL_FAILURE(expect_as_planned(drawn(number, on_processors()), {}, counts));
}

// Ten draws a test, so that several processes share them out.
class CudaRandomMemory : public CudaTest, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(CudaRandomMemory, PlannedIsAllocatedToTheByte) {
  const MeshDevices devices = on_gpu(MeshTransport::kStaged);
  DrawCounts counts;
  for (uint64_t number = 10 * GetParam(); number < 10 * GetParam() + 10; ++number)
    ASSERT_NO_FATAL_FAILURE(expect_as_planned(drawn(1000 + number, on_one_gpu()), devices, counts));
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaRandomMemory, ::testing::Range<uint64_t>(0, 10));

}  // namespace
}  // namespace vitrail
