// vitrail plan of an inference: its memory adds up, and the largest batch is one that fits.
#include <gtest/gtest.h>

#include <algorithm>

#include "in_process.h"

namespace vitrail::cli {
namespace {

TEST(Plan, MemoryRowsAddUpForEveryShape) {
  for (const char* batch : {"1", "3", "16"})
    for (const char* image : {"32", "48x80"})
      for (const char* fuse : {"--no-fuse=false", "--no-fuse"}) {
        SCOPED_TRACE(std::string(batch) + " " + image + " " + fuse);
        const auto answer =
            run_in_process("plan", {"--weights", "rule", "--model", "vit_tiny_patch16_224", "--batch", batch,
                                    "--image", image, fuse, "--threads", "2"})
                .json();
        int64_t sum = 0, peak = answer["memory"]["peak"];
        for (const auto& [name, bytes] : answer["memory"].items())
          sum += name == "peak" ? 0 : bytes.get<int64_t>();
        EXPECT_EQ(sum, peak);
        EXPECT_LE(answer["memory_lower_bound"].get<int64_t>(), peak);
      }
}

TEST(Plan, EveryKindOfMemoryIsNamedAndFlopsStandBesideMacs) {
  const std::vector<std::string> arguments = {"--weights", "rule", "--model", "vit_tiny_patch16_224",
                                              "--backend", "ref",  "--batch", "2"};
  const auto answer = run_in_process("plan", arguments).json();
  for (const char* name : {"parameters", "transient", "scratch", "staging", "alignment and gaps", "peak"})
    EXPECT_TRUE(answer["memory"].contains(name)) << name;
  EXPECT_TRUE(answer["declined"].is_array());
  const std::string text = run_in_process("plan", arguments, false).out;
  for (const char* part : {"FLOPs", "MACs", "staging", "least possible", "most bytes alive at once"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Plan, TheLargestBatchFitsAndTheNextStepDoesNot) {
  const std::vector<std::string> base = {"--weights", "rule", "--model", "vit_base_patch16_224",
                                         "--threads", "1"};
  const auto answer = run_in_process("plan", base).json();
  const auto available = answer["memory_available"].get<double>();
  const auto peak_at = [&](int64_t batch) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), {"--batch", std::to_string(batch)});
    return run_in_process("plan", arguments).json()["memory"]["peak"].get<double>();
  };
  const int64_t largest = answer["largest_batch"];
  ASSERT_GT(largest, 0);
  // Memory in use changes between the calls, hence the margin.
  EXPECT_LT(peak_at(largest), available * 1.2);
  if (largest < 60000) {
    EXPECT_GT(peak_at(largest + largest / 8 + 1), available * 0.9);
  }
}

TEST(Plan, DumpsShowWhatAPassDid) {
  const std::vector<std::string> base = {"--weights", "rule", "--model", "vit_tiny_patch16_224",
                                         "--dump-after"};
  const auto lines = [&](const char* step) {
    std::vector<std::string> arguments = base;
    arguments.emplace_back(step);
    const std::string text = run_in_process("plan", arguments, false).out;
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_GT(lines("record"), lines("fuse"));
  EXPECT_LE(lines("schedule"), lines("fuse"));
}

}  // namespace
}  // namespace vitrail::cli
