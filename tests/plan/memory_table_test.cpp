#include "plan/memory_table.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(MemoryTable, RowsAddUpToThePeak) {
  std::array<size_t, kCategoryCount> bytes{};
  bytes[static_cast<size_t>(Category::kParameters)] = 1000;
  bytes[static_cast<size_t>(Category::kGradients)] = 1;
  const NamedBytes rows = memory_rows(bytes, 1100);
  EXPECT_EQ(rows, (NamedBytes{{to_string(Category::kParameters), 1000},
                              {to_string(Category::kGradients), 1},
                              {"alignment and gaps", 99}}));
  EXPECT_EQ(sum_of(rows), 1100u);
}

TEST(MemoryTable, WhatIsAlwaysShownMayBeNothing) {
  constexpr Category kAlways[] = {Category::kScratch};
  const NamedBytes rows = memory_rows({}, 0, kAlways);
  EXPECT_EQ(rows, (NamedBytes{{to_string(Category::kScratch), 0}, {"alignment and gaps", 0}}));
}

TEST(MemoryTable, OneByteIsARow) {
  std::array<size_t, kCategoryCount> bytes{};
  bytes[static_cast<size_t>(Category::kGradients)] = 1;
  EXPECT_EQ(memory_rows(bytes, 1),
            (NamedBytes{{to_string(Category::kGradients), 1}, {"alignment and gaps", 0}}));
  EXPECT_EQ(memory_rows(bytes, 0).back().second, 0u) << "never less than nothing";
}

TEST(MemoryTable, SharesAreOfThePeak) {
  const std::string text = memory_table({{"parameters", 3 << 20}, {"gradients", 1 << 20}}, 4 << 20, 2);
  for (const char* piece : {"  memory", "3.00 MiB", "75.00 %", "25.00 %", "peak", "4.00 MiB"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
}

}  // namespace
}  // namespace vitrail
