// Checkpoints that several ranks write together: complete on all of them or absent, whoever fails.
#include "io/checkpoint/shared_save.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "base/write_error.h"
#include "io/checkpoint/durable.h"
#include "io/samples.h"
#include "rank_saves.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

// Every rank was told which of them failed, and why.
void expect_failed(const std::vector<std::exception_ptr>& errors, int rank, const std::string& part) {
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    try {
      std::rethrow_exception(error);
    } catch (const SaveFailed& failed) {
      EXPECT_EQ(failed.rank(), rank);
      EXPECT_NE(failed.own().find(part), std::string::npos) << failed.what();
      EXPECT_NE(failed.message().find("rank " + std::to_string(rank) + ": "), std::string::npos)
          << failed.what();
    }
  }
}

void fail_in_piece(CheckpointContent& content, const std::function<void()>& fail) {
  content.parts.back().tensor.fill = [fail](std::span<std::byte>) { fail(); };
}

TEST(SharedSave, IsOneCheckpointWithAPieceOfEachRank) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  int helped = 0;
  expect_saved(
      save(store, 12, [&](int, CheckpointContent& content) { content.help_model = [&] { ++helped; }; }));
  EXPECT_EQ(helped, kRanks - 1);
  EXPECT_EQ(names_in(store.folder()), (std::vector<std::string>{"latest", "step-00000012"}));
  EXPECT_EQ(names_in(store.folder_of(12)),
            (std::vector<std::string>{"config.json", "manifest.json", "model.safetensors",
                                      "state-00000-of-00003.safetensors", "state-00001-of-00003.safetensors",
                                      "state-00002-of-00003.safetensors"}));
  EXPECT_EQ(require_manifest(store.folder_of(12)).files.size(), 5u);
  EXPECT_TRUE(holds_its_step(store.newest_good().value()));
}

// One rank's checkpoint is of format 1, as those of earlier versions are.
TEST(SharedSave, AnyNumberOfRanksOpensWhatAnyNumberWrote) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 9});
  store.save(small_content(1));
  EXPECT_EQ(require_manifest(store.folder_of(1)).pieces, 0);
  expect_saved(save(store, 2));
  for (const int64_t step : {1, 2})
    for (const int ranks : {1, 2, 3, 4})
      expect_saved(on_ranks(ranks, [&](Partners& partners) {
        EXPECT_TRUE(holds_its_step(CheckpointStore(run.path().string()).open(step, &partners)));
      }));
}

TEST(SharedSave, TheFailureOfOneRankIsEverybodys) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  expect_saved(save(store, 1));
  const auto before = names_in(store.folder());
  const std::pair<const char*, std::function<void()>> failures[] = {
      {"Input/output error", [] { throw Error(ErrorKind::kWrite, "Input/output error"); }},
      {"quota", [] { throw NoRoom(ErrorKind::kWrite, "Disk quota exceeded"); }},
      {"out of memory", [] { throw std::bad_alloc(); }},
      {"odd", [] { throw std::runtime_error("something odd"); }},
  };
  for (const auto& [part, fail] : failures)
    for (int failing = 0; failing < kRanks; ++failing) {
      SCOPED_TRACE(strf("%s on rank %d", part, failing));
      expect_failed(save(store, 2,
                         [&, fail = fail](int rank, CheckpointContent& content) {
                           if (rank == failing) fail_in_piece(content, fail);
                         }),
                    failing, part);
      EXPECT_EQ(names_in(store.folder()), before);
    }
  expect_saved(save(store, 2));
  EXPECT_EQ(store.newest_good()->step, 2);
}

TEST(SharedSave, TheFirstRanksOwnFailuresReleaseTheOthers) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  expect_saved(save(store, 1));
  const auto before = names_in(store.folder());
  const auto fail = [] { throw Error(ErrorKind::kWrite, "pulled the plug"); };
  const ContentChange changes[] = {
      [&](int, CheckpointContent& content) { content.before = fail; },
      [&](int, CheckpointContent& content) { content.write_model = [&](const std::string&) { fail(); }; },
  };
  for (const ContentChange& change : changes) {
    expect_failed(save(store, 2, change), 0, "pulled the plug");
    EXPECT_EQ(names_in(store.folder()), before);
  }
  expect_failed(
      save(store, 2, [](int, CheckpointContent& content) { content.model_bytes = uint64_t{1} << 60; }), 0,
      "bytes needed");
  fs::rename(store.folder(), run / "aside");
  put(run, "checkpoints", "in the way");
  expect_failed(save(store, 2), 0, "checkpoints is a file");
}

// A rank that writes elsewhere has written nothing.
TEST(SharedSave, PiecesThatTheFirstRankDoesNotSeeAreNotCommitted) {
  const TempFolder run, elsewhere;
  CheckpointStore store(run.path().string());
  const auto errors = on_ranks(kRanks, [&](Partners& partners) {
    CheckpointStore far(elsewhere.path().string());
    (partners.rank() == 2 ? far : store).save(small_share(1, partners.rank(), kRanks), kLeastGood, &partners);
  });
  expect_failed(errors, 2, "cannot");
  EXPECT_TRUE(names_in(store.folder()).empty());
}

TEST(SharedSave, PartsThatDoNotMakeAWholeAreNotCommitted) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  const auto all_of_it = [](int, CheckpointContent& content) { content.parts = small_share(1, 0, 1).parts; };
  expect_failed(save(store, 1, all_of_it), 0, "are in state-00000-of-00003.safetensors and in state-00001");
  EXPECT_TRUE(names_in(store.folder()).empty());
}

// What the other ranks will write counts before anything is written.
TEST(SharedSave, RoomIsAskedForThePiecesOfAllRanks) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  const auto huge = [](int rank, CheckpointContent& content) {
    if (rank > 0) content.parts.back().tensor.info.bytes = uint64_t{1} << 59;
  };
  expect_failed(save(store, 1, huge), 0, "checkpoints: 13835058055282");
  EXPECT_TRUE(names_in(store.folder()).empty());
}

TEST(SharedSave, LackOfRoomOnOneRankCostsTheOldest) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 5});
  std::vector<int64_t> told;
  store.on_made_room([&](int64_t step) { told.push_back(step); });
  for (int64_t step = 1; step <= 5; ++step) expect_saved(save(store, step));
  int left = 2;
  expect_saved(save(store, 6, [&](int rank, CheckpointContent& content) {
    if (rank != 2) return;
    auto& fill = content.parts.back().tensor.fill;
    fill = [&left, fill](std::span<std::byte> target) {
      if (left-- > 0) throw NoRoom(ErrorKind::kWrite, "No space left on device");
      fill(target);
    };
  }));
  EXPECT_EQ(told, (Steps{1, 2}));
  EXPECT_EQ(store.steps(), (Steps{3, 4, 5, 6}));
  EXPECT_TRUE(holds_its_step(store.newest_good().value()));
}

TEST(SharedSave, LackOfRoomBesideAnotherErrorCostsNothing) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 5});
  for (int64_t step = 1; step <= 4; ++step) expect_saved(save(store, step));
  expect_failed(save(store, 5,
                     [](int rank, CheckpointContent& content) {
                       if (rank == 0) return;
                       fail_in_piece(content, [rank] {
                         if (rank == 1) throw NoRoom(ErrorKind::kWrite, "No space left on device");
                         throw Error(ErrorKind::kWrite, "Input/output error");
                       });
                     }),
                2, "Input/output error");
  EXPECT_EQ(store.steps(), (Steps{1, 2, 3, 4}));
}

}  // namespace
}  // namespace vitrail::testing
