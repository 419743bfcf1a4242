// Several engines at once, each on a thread of its own: every call finds its GPU and its stream, whatever the
// others do meanwhile.
#include <thread>

#include "api/engine.h"
#include "cuda_test.h"
#include "golden_cases.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

class CudaThreads : public CudaTest {};

std::vector<float> answer_of(int ordinal, DType compute, int runs) {
  const VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  const std::vector<float> images = golden::images(config, 2);
  Engine engine(config, {.backend = "cuda", .ordinal = ordinal, .batch = 2, .compute = compute});
  for (int i = 0; i < runs; ++i) engine.run(images, 2);
  return engine.output("logits");
}

// One engine opens, allocates and records while the other runs; with several GPUs they are on two of them.
TEST_F(CudaThreads, EnginesDoNotDisturbEachOther) {
  const int last = static_cast<int>(cuda_report().gpus.size()) - 1;
  for (DType compute : {DType::kF32, DType::kBF16}) {
    const std::vector<float> first = answer_of(0, compute, 1), other = answer_of(last, compute, 1);
    std::vector<std::vector<float>> found(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < 3; ++round) found[i] = answer_of(i % 2 ? last : 0, compute, 10);
      });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], i % 2 ? other : first) << to_string(compute) << " thread " << i;
  }
}

// An engine may be made on one thread and used on another.
TEST_F(CudaThreads, AnEngineMayChangeItsThread) {
  const VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  const std::vector<float> images = golden::images(config, 1);
  const int last = static_cast<int>(cuda_report().gpus.size()) - 1;
  Engine engine(config, {.backend = "cuda", .ordinal = last});
  engine.run(images, 1);
  const std::vector<float> wanted = engine.output("logits");
  std::vector<float> found;
  std::thread([&] {
    for (int i = 0; i < 3; ++i) engine.run(images, 1);
    found = engine.output("logits");
  }).join();
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace vitrail
