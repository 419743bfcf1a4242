// A real file system that is too small, or fills up, or may only be read. Needs the right to mount.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "faults/run_faulted.h"
#include "faults/small_disk.h"
#include "faults/small_run.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = 400'000;  // of the state; a checkpoint is twice and a half as large

std::string why_not_saved(CheckpointStore& store, const CheckpointContent& content) {
  try {
    store.save(content);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    return error.what();
  }
}

void expect_only(CheckpointStore& store, int64_t step) {
  EXPECT_EQ(store.steps(), step == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{step});
  const auto newest = store.newest_good();
  EXPECT_EQ(newest.has_value(), step != 0);
  EXPECT_TRUE(!newest || holds_its_step(*newest, kBytes));
  for (const auto& entry : fs::directory_iterator(store.folder()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-")) << entry.path();
}

TEST(FullDisk, TooSmallForOneMoreIsSaidBeforehand) {
  const double checkpoint = 2.5 * kBytes;
  for (const double room : {0.3, 0.9, 1.3, 1.6, 1.9}) {
    SCOPED_TRACE(room);
    const WorkFolder work;
    const SmallDisk disk(work / "disk", static_cast<size_t>(room * checkpoint));
    if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
    CheckpointStore store(disk.path());
    store.prepare();
    const int64_t fitting = room > 1.2 ? 1 : 0;
    for (int64_t step = 1; step <= fitting; ++step)
      EXPECT_EQ(why_not_saved(store, small_content(step, kBytes)), "");
    const std::string why = why_not_saved(store, small_content(fitting + 1, kBytes));
    EXPECT_NE(why.find("not enough space in " + store.folder()), std::string::npos) << why;
    EXPECT_NE(why.find("bytes needed"), std::string::npos) << why;
    expect_only(store, fitting);
  }
}

TEST(FullDisk, FillingUpDuringTheSave) {
  for (const size_t left : {size_t{0}, size_t{8192}, kBytes / 2, kBytes}) {
    SCOPED_TRACE(left);
    const WorkFolder work;
    const SmallDisk disk(work / "disk", 6 * kBytes);
    if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
    CheckpointStore store(disk.path());
    ASSERT_EQ(why_not_saved(store, small_content(1, kBytes)), "");
    CheckpointContent content = small_content(2, kBytes);
    const auto write_model = content.write_model;
    content.write_model = [&](const std::string& folder) {
      const size_t room = fs::space(disk.path()).available;
      std::ofstream(disk.path() + "/filler") << std::string(room - left, 'x');
      write_model(folder);
    };
    const std::string why = why_not_saved(store, content);
    EXPECT_NE(why.find("No space left"), std::string::npos) << why;
    expect_only(store, 1);
    fs::remove(disk.path() + "/filler");
    EXPECT_EQ(why_not_saved(store, small_content(2, kBytes)), "");
  }
}

// Room for three and a half: the oldest of three goes before the fourth comes.
TEST(FullDisk, TheOldestMakesRoomForTheNext) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", static_cast<size_t>(3.6 * 2.5 * kBytes));
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  CheckpointStore store(disk.path(), {.keep_last = 3});
  for (int64_t step = 1; step <= 6; ++step) {
    EXPECT_EQ(why_not_saved(store, small_content(step, kBytes)), "") << step;
    EXPECT_EQ(store.newest_good()->step, step);
  }
  EXPECT_EQ(store.steps().size(), 3u);
}

TEST(FullDisk, TwoGoodOnesStayUnlessItIsTheLast) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", static_cast<size_t>(2.6 * 2.5 * kBytes));
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  CheckpointStore store(disk.path(), {.keep_last = 3});
  for (int64_t step = 1; step <= 2; ++step) ASSERT_EQ(why_not_saved(store, small_content(step, kBytes)), "");
  EXPECT_NE(why_not_saved(store, small_content(3, kBytes)), "");
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2}));
  store.save(small_content(3, kBytes), 1);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(holds_its_step(store.open(3), kBytes));
}

TEST(FullDisk, AReadOnlyPlaceIsFoundAtTheStart) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", 6 * kBytes);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  CheckpointStore store(disk.path());
  ASSERT_EQ(why_not_saved(store, small_content(1, kBytes)), "");
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_THROW(store.prepare(), Error);
  EXPECT_NE(why_not_saved(store, small_content(2, kBytes)).find("Read-only file system"), std::string::npos);
  EXPECT_EQ(store.newest_good()->step, 1);
}

}  // namespace
}  // namespace vitrail::testing
