// Checkpoints that several ranks write and read together: complete on all of them or absent, whoever fails.
#include "io/checkpoint/shared_save.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "base/write_error.h"
#include "faults/small_run.h"
#include "faults/turn_partners.h"
#include "io/checkpoint/durable.h"
#include "io/samples.h"
#include "io/sealed_folder.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

constexpr int kRanks = 3;
constexpr size_t kBytes = 3 << 20;  // a share of the blocks for every rank
using Change = std::function<void(int rank, CheckpointContent& content)>;

// Saves a step on three ranks; returns what each of them threw.
std::vector<std::exception_ptr> save(CheckpointStore& store, int64_t step, const Change& change = {},
                                     size_t bytes = 5000) {
  return on_ranks(kRanks, [&](Partners& partners) {
    CheckpointContent content = small_share(step, partners.rank(), kRanks, bytes);
    if (change) change(partners.rank(), content);
    CheckpointStore other(fs::path(store.folder()).parent_path().string());
    (partners.rank() == 0 ? store : other).save(content, kLeastGood, &partners);
  });
}

void expect_saved(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error);
}

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
  const Change changes[] = {
      [&](int, CheckpointContent& content) { content.before = fail; },
      [&](int, CheckpointContent& content) { content.write_model = [&](const std::string&) { fail(); }; },
  };
  for (const Change& change : changes) {
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

// Damage to the newer of two checkpoints, of which each rank reads a share.
class SharedDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t step : {1, 2}) expect_saved(save(store_, step, {}, kBytes));
  }
  std::string newest(const std::string& name) const { return store_.folder_of(2) + "/" + name; }
  // Every rank goes back to the older one, for the same reason.
  void expect_fallback(const std::string& part) const {
    std::vector<std::string> said(kRanks);
    expect_saved(on_ranks(kRanks, [&](Partners& partners) {
      std::vector<std::string> problems;
      const auto opened = CheckpointStore(run_.path().string()).newest_good(&problems, &partners);
      EXPECT_EQ(opened.value().step, 1);
      EXPECT_EQ(problems.size(), 1u);
      said[static_cast<size_t>(partners.rank())] = problems.at(0);
    }));
    EXPECT_NE(said[0].find(part), std::string::npos) << said[0];
    for (const std::string& text : said) EXPECT_EQ(text, said[0]);
  }
  // Who asks for that very one, as a strict resume does, is refused on every rank.
  void expect_refused(const std::string& part) const {
    const auto errors = on_ranks(
        kRanks, [&](Partners& partners) { CheckpointStore(run_.path().string()).open(2, &partners); });
    for (const auto& error : errors) {
      ASSERT_TRUE(error) << part;
      try {
        std::rethrow_exception(error);
      } catch (const Error& refused) {
        EXPECT_EQ(refused.kind(), ErrorKind::kData);
        EXPECT_NE(refused.message().find(part), std::string::npos) << refused.what();
      }
    }
  }
  void expect_damage(const std::string& part) const {
    expect_fallback(part);
    expect_refused(part);
  }
  void flip(const std::string& path, size_t offset) const {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }

  TempFolder run_;
  CheckpointStore store_{run_.path().string()};
};

TEST_F(SharedDamage, ABadBlockOfAnyFileIsFoundByOneAndBelievedByAll) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    const std::string path = newest(name);
    for (size_t at = 100; at < fs::file_size(path); at += kChecksumBlock) {
      SCOPED_TRACE(strf("%s at %zu", name.c_str(), at));
      flip(path, at % fs::file_size(path));
      expect_fallback(name);
      flip(path, at % fs::file_size(path));
    }
  }
}

TEST_F(SharedDamage, MissingAndShortFilesAreFound) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    SCOPED_TRACE(name);
    fs::rename(newest(name), run_ / "kept");
    expect_damage(name);
    fs::copy_file(run_ / "kept", newest(name));
    fs::resize_file(newest(name), fs::file_size(newest(name)) - 1);
    expect_damage(name);
    fs::rename(run_ / "kept", newest(name));
  }
}

// Files that their own checksums hold good: their place in the save does not.
TEST_F(SharedDamage, PiecesOfAnotherSaveAndDoubledOnesAreFoundWhateverTheManifestSays) {
  const std::string second = newest(piece_name(1, kRanks)), kept = run_ / "kept";
  fs::copy_file(second, kept);
  const std::pair<std::string, const char*> cases[] = {
      {store_.folder_of(1) + "/" + piece_name(1, kRanks), "it is a piece of another save"},
      {newest(piece_name(0, kRanks)), "it is another piece than its name says"},
  };
  for (const auto& [from, says] : cases) {
    fs::copy_file(from, second, fs::copy_options::overwrite_existing);
    expect_damage(piece_name(1, kRanks));
    seal_folder(store_.folder_of(2));
    expect_damage(says);
  }
  fs::remove(second);
  seal_folder(store_.folder_of(2));
  expect_damage("does not list state-00001-of-00003.safetensors");
  fs::copy_file(kept, second);
  seal_folder(store_.folder_of(2));
  EXPECT_TRUE(holds_its_step(store_.newest_good().value(), kBytes));
}

TEST_F(SharedDamage, AFolderThatIsNotTheSameForAllIsNotUsed) {
  const TempFolder copy;
  fs::copy(store_.folder(), copy / "checkpoints",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  expect_saved(save(store_, 2));
  for (const bool there : {true, false}) {
    if (!there) fs::remove_all(copy / "checkpoints/step-00000002");
    expect_saved(on_ranks(kRanks, [&](Partners& partners) {
      std::vector<std::string> problems;
      CheckpointStore mine(partners.rank() == 2 ? copy.path().string() : run_.path().string());
      EXPECT_EQ(mine.newest_good(&problems, &partners).value().step, 1);
      EXPECT_NE(problems.at(0).find("rank 2"), std::string::npos) << problems[0];
    }));
  }
}

TEST_F(SharedDamage, ALaterFormatIsRefusedByAll) {
  write_file(newest(kManifestName), "{\"format\": 9, \"entirely\": \"different\"}");
  for (const auto& error : on_ranks(kRanks, [&](Partners& partners) {
         CheckpointStore(run_.path().string()).newest_good(nullptr, &partners);
       })) {
    ASSERT_TRUE(error);
    EXPECT_THROW(std::rethrow_exception(error), NewerFormat);
  }
}

}  // namespace
}  // namespace vitrail::testing
