// Damage to checkpoints that several ranks read together: found by one, believed by all.
#include <gtest/gtest.h>

#include <fstream>

#include "io/checkpoint/durable.h"
#include "io/checkpoint/shared_save.h"
#include "io/samples.h"
#include "io/sealed_folder.h"
#include "rank_saves.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = 3 << 20;  // a share of the blocks for every rank

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
