// Checkpoints that three ranks save together.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <vector>

#include "faults/small_run.h"
#include "faults/turn_partners.h"

namespace vitrail::testing {

constexpr int kRanks = 3;
using ContentChange = std::function<void(int rank, CheckpointContent& content)>;

// Saves a step on three ranks; returns what each of them threw.
inline std::vector<std::exception_ptr> save(CheckpointStore& store, int64_t step,
                                            const ContentChange& change = {}, size_t bytes = 5000) {
  return on_ranks(kRanks, [&](Partners& partners) {
    CheckpointContent content = small_share(step, partners.rank(), kRanks, bytes);
    if (change) change(partners.rank(), content);
    CheckpointStore other(std::filesystem::path(store.folder()).parent_path().string());
    (partners.rank() == 0 ? store : other).save(content, kLeastGood, &partners);
  });
}

inline void expect_saved(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error);
}

}  // namespace vitrail::testing
