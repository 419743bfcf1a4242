// The largest batch that fits is found in few evaluations, since each plans a whole program.
#include "plan/largest_batch.h"

#include <gtest/gtest.h>

#include <ctime>
#include <vector>

#include "in_process.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

// Memory is a constant, a part per image, and alignment; beyond a size another program needs most.
struct Memory {
  size_t constant, per_image, alignment;
  int64_t knee;
  size_t operator()(int64_t batch) const {
    size_t bytes = constant + per_image * static_cast<size_t>(batch);
    if (batch > knee) bytes += 3 * per_image * static_cast<size_t>(batch - knee);
    return (bytes + alignment - 1) / alignment * alignment;
  }
};

TEST(LargestBatch, IsFoundToWithinOneInSixtyFourByFewQuestions) {
  for (const Memory& memory : {Memory{1000, 10, 1, 1 << 20}, Memory{1 << 20, 777, 4096, 1 << 20},
                               Memory{0, 1000, 64, 90}, Memory{5'000'000, 3, 64, 1000}, Memory{100, 0, 1, 9}})
    for (const size_t bytes :
         {size_t{999}, size_t{1 << 12}, size_t{123'457}, size_t{5'100'000}, size_t{1} << 33})
      for (const int64_t unit : {1, 8, 48}) {
        int questions = 0;
        const int64_t found = largest_batch(unit, bytes, [&](int64_t batch) {
          EXPECT_EQ(batch % unit, 0);
          EXPECT_LE(batch, kLargestBatch);
          ++questions;
          return memory(batch);
        });
        SCOPED_TRACE(strf("%zu + %zu an image, room for %zu, unit %d, found %d", memory.constant,
                          memory.per_image, bytes, static_cast<int>(unit), static_cast<int>(found)));
        EXPECT_TRUE(found == 0 || memory(found) <= bytes);
        const int64_t more = found + unit * std::max<int64_t>(1, found / unit / 64);
        EXPECT_TRUE(more > kLargestBatch || memory(more) > bytes);
        EXPECT_LE(questions, 12);
        EXPECT_TRUE(memory.knee <= kLargestBatch || questions <= 9) << questions;
      }
}

TEST(LargestBatch, TheEndOfTheSearchIsNotTakenForALimit) {
  EXPECT_EQ(largest_batch_text(65535), "65,535");
  EXPECT_EQ(largest_batch_text(65536), "65,536 or more");
  EXPECT_EQ(largest_batch_text(65535, 3), "65,535 or more");
  EXPECT_EQ(largest_batch_text(0), "0");
}

TEST(LargestBatch, OfDivisorsTheLargestIsAskedFirstThenHalves) {
  EXPECT_EQ(micro_batches(24, 1), (std::vector<int64_t>{1, 2, 3, 4, 6, 8, 12, 24}));
  EXPECT_EQ(micro_batches(24, 4), (std::vector<int64_t>{4, 8, 12, 24}));
  EXPECT_EQ(micro_batches(7, 2), std::vector<int64_t>());
  const std::vector<int64_t> sizes = micro_batches(24, 1);
  for (int64_t room = 0; room <= 25; ++room) {
    std::vector<int64_t> asked;
    const int64_t found = largest_fitting(sizes, [&](int64_t size) {
      asked.push_back(size);
      return size <= room;
    });
    int64_t wanted = 0;
    for (const int64_t size : sizes) wanted = size <= room ? size : wanted;
    EXPECT_EQ(found, wanted) << room;
    EXPECT_EQ(asked.front(), 24);
    EXPECT_LE(asked.size(), 4u) << room;
  }
  EXPECT_EQ(largest_fitting({}, [](int64_t) { return true; }), 0);
}

// Returns the CPU time of this process, which other processes do not affect.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Planning grows with the depth, not with its square: each doubling may take three times as long.
TEST(TrainPlan, DeepModelsArePlannedInTimeThatGrowsWithTheirDepth) {
  const auto seconds = [](int depth) {
    const double start = processor_seconds();
    run_in_process("plan", tiny_model() + std::vector<std::string>{"--classes", "4", "--train", "--set",
                                                                   "model.depth=" + std::to_string(depth)});
    return processor_seconds() - start;
  };
  seconds(2);
  const double shallow = std::min(seconds(32), seconds(32));
  EXPECT_LT(seconds(128), 9 * shallow + 0.5);
}

}  // namespace
}  // namespace vitrail::cli
