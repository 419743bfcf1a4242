// Folders that are replaced whole, whatever the file system can do and whenever the process dies.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "io/checkpoint/durable.h"
#include "io/file_faults.h"
#include "io/samples.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// The errno of a file system that cannot swap folders; 0: it can.
class ReplaceFolder : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    refuse_exchange(GetParam());
    make("best", "old");
    make("new", "new");
  }
  void TearDown() override { refuse_exchange(0); }

  std::string at(const std::string& name) const { return (home_.path() / name).string(); }
  void make(const std::string& name, const std::string& content) const {
    fs::create_directories(at(name));
    for (const char* file : {"/a", "/b", "/c"}) write_file(at(name) + file, content);
  }
  // "old" or "new" when the folder is wholly one of them.
  std::string content(const std::string& name) const {
    std::string first = read_file(at(name) + "/a", 10);
    for (const char* file : {"/b", "/c"})
      if (read_file(at(name) + file, 10) != first) return "mixed";
    return first;
  }
  void replace() const { replace_folder(at("new"), at("best"), at(".tmp-best-old")); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(home_.path()), fs::directory_iterator()));
  }

  TempFolder home_;
};

TEST_P(ReplaceFolder, TheOldOneIsGone) {
  replace();
  EXPECT_EQ(content("best"), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_P(ReplaceFolder, DeathAtAnyStepLeavesOneOfThemWhole) {
  long call = 1;
  for (; dies_at(call, [&] { replace(); }); ++call) {
    SCOPED_TRACE(call);
    finish_replacing(at("best"), at(".tmp-best-old"));
    const std::string now = content("best");
    EXPECT_TRUE(now == "old" || now == "new") << now;
    make("new", "new");
    replace();
    EXPECT_EQ(content("best"), "new");
    EXPECT_EQ(entries(), 1u);
    make("best", "old");
    make("new", "new");
  }
  EXPECT_GT(call, 5);
}

// A reader that holds a file of the old folder open leaves something behind that cannot be deleted.
TEST_P(ReplaceFolder, WhatCannotBeDeletedIsNoObstacle) {
  for (const char* left : {".tmp-best-old", ".tmp-gone-0-tmp-best-old", "best"}) {
    fs::create_directories(at(left));
    write_file(at(left) + "/.nfs01", "x");
  }
  hold_nfs_files(true);
  for (const char* content_now : {"new", "newer", "newest"}) {
    make("new", content_now);
    replace();
    EXPECT_EQ(content("best"), content_now);
  }
  hold_nfs_files(false);
  make("new", "last");
  replace();
  EXPECT_EQ(content("best"), "last");
  EXPECT_EQ(entries(), 1u);
}

TEST_P(ReplaceFolder, AFolderThatCannotTakeThePlaceLeavesTheOldOne) {
  EXPECT_THROW(replace_folder(at("nowhere"), at("best"), at(".tmp-best-old")), Error);
  EXPECT_EQ(content("best"), "old");
  EXPECT_EQ(entries(), 2u);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ReplaceFolder, ::testing::Values(0, EINVAL, ENOSYS, ENOTSUP),
                         [](const auto& test) -> std::string {
                           const int code = test.param;
                           if (code == 0) return "WithExchange";
                           return code == EINVAL   ? "WithoutExchange"
                                  : code == ENOSYS ? "OldKernel"
                                                   : "NotSupported";
                         });

}  // namespace
}  // namespace vitrail::testing
