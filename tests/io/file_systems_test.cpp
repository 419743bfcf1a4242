// What file systems cannot do or do not say, and what of it a save goes without.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "faults/small_run.h"
#include "io/checkpoint/durable.h"
#include "io/file_faults.h"
#include "io/samples.h"
#include "thrown.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

class FileSystems : public ::testing::Test {
 protected:
  void TearDown() override {
    refuse_exchange(0);
    refuse_links(0);
    refuse_flushes(0, 0);
    tell_room({});
  }
  std::string at(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

TEST_F(FileSystems, RoomKeptForRootIsNoRoom) {
  tell_room(Room{.blocks = 1000, .free = 100, .available = 10});
  EXPECT_TRUE(has_space(at(""), 10 * kRoomBlock));
  EXPECT_FALSE(has_space(at(""), 10 * kRoomBlock + 1));
  EXPECT_NO_THROW(require_space(at(""), 10 * kRoomBlock));
  EXPECT_NE(thrown_by([&] { require_space(at(""), 100 * kRoomBlock); }).find("51200 bytes needed, 5120 free"),
            std::string::npos);
}

TEST_F(FileSystems, OneThatReportsNoRoomIsWrittenTo) {
  tell_room(Room{.blocks = 0, .free = 0, .available = 0});
  EXPECT_TRUE(has_space(at(""), uint64_t{1} << 60));
  CheckpointStore(at("run")).save(small_content(1));
  EXPECT_TRUE(holds_its_step(CheckpointStore(at("run")).newest_good().value()));
}

TEST_F(FileSystems, OneWithoutLinksKeepsCheckpointsWithoutLatest) {
  for (const int code : {EPERM, ENOTSUP}) {
    refuse_links(code);
    const std::string run = at(std::to_string(code));
    CheckpointStore(run).save(small_content(1));
    EXPECT_EQ(names_in(run + "/checkpoints"), std::vector<std::string>{"step-00000001"});
    EXPECT_TRUE(holds_its_step(CheckpointStore(run).newest_good().value()));
  }
  refuse_links(EIO);
  EXPECT_NE(
      thrown_by([&] { CheckpointStore(at("run")).save(small_content(1)); }).find("cannot create the link"),
      std::string::npos);
}

// Some cannot flush a folder; each can flush a file, and one that does not has lost it.
TEST_F(FileSystems, FoldersThatCannotBeFlushedAreNoErrorAndFilesAre) {
  const std::string file = put(folder_, "file", "x");
  for (const int code : {EINVAL, ENOTSUP}) {
    refuse_flushes(0, code);
    EXPECT_NO_THROW(sync_folder(at("")));
    EXPECT_NO_THROW(CheckpointStore(at("run")).save(small_content(code)));
    refuse_flushes(code, 0);
    EXPECT_NE(thrown_by([&] { sync_file(file); }).find("cannot flush " + file), std::string::npos) << code;
    EXPECT_THROW(CheckpointStore(at("run")).save(small_content(0)), Error);
  }
  refuse_flushes(0, EIO);
  EXPECT_NE(thrown_by([&] { sync_folder(at("")); }).find("cannot flush"), std::string::npos);
}

TEST_F(FileSystems, AnyOtherFailureOfASwapIsTold) {
  for (const char* name : {"best", "new"}) fs::create_directories(at(name) + "/in");
  refuse_exchange(EIO);
  EXPECT_NE(thrown_by([&] {
              replace_folder(at("new"), at("best"), at("aside"));
            }).find("cannot put in place " + at("best")),
            std::string::npos);
  EXPECT_EQ(names_in(at("")), (std::vector<std::string>{"best", "new"}));
}

}  // namespace
}  // namespace vitrail::testing
