// Names of files that are being written, and what is removed of the dead.
#include "base/half_written.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_of(const TempFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.insert(entry.path().filename());
  return names;
}

// The mark of a process that has ended.
ProcessMark dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return {ProcessMark::current().host, child, 1};
}

TEST(HalfWritten, NamesSayWhichFileAndWhoseItIs) {
  const auto found = half_written(half_written_name("model.v2.npz"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->file, "model.v2.npz");
  EXPECT_EQ(found->writer, ProcessMark::current());
  EXPECT_NE(half_written_name("a"), half_written_name("a"));
  const std::string longest(255, 'x'), name = half_written_name(longest);
  EXPECT_LE(name.size(), 255u);
  EXPECT_TRUE(longest.starts_with(half_written(name)->file));
  const auto earlier = half_written(".a.json.tmp-12-3");
  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->file, "a.json");
  EXPECT_FALSE(earlier->writer);
  for (const char* other : {".a.tmp-1-here-7", ".a.tmp-x-here-7-1", ".a.tmp-1-here-7-1-9", "a.tmp-1-here-7-1",
                            ".a.tmp-1-", ".a.tmp-1", ".tmp-1-here-7-1", ""})
    EXPECT_FALSE(half_written(other)) << other;
}

TEST(HalfWritten, OnlyWhatTheDeadLeftOfThisFileIsRemoved) {
  const TempFolder folder;
  const ProcessMark dead = dead_process();
  const std::string gone = ".m.npz.tmp-1-" + dead.text(), held = ".m.npz.tmp-2-" + dead.text();
  const std::set<std::string> stay = {
      "m.npz", ".m.npz.tmp-12-3", ".m.npz.tmp-1-" + ProcessMark::current().text(),
      ".m.npz.tmp-1-" + ProcessMark{"elsewhere", dead.pid, 1}.text(), ".m.npz.json.tmp-1-" + dead.text()};
  for (const std::string& name : stay) folder.file(name);
  folder.file(gone), folder.file(held);
  const int of_a_container = ::open((folder.path() / held).c_str(), O_WRONLY);
  hold_half_written(of_a_container);
  remove_abandoned((folder.path() / "m.npz").string());
  EXPECT_FALSE(fs::exists(folder.path() / gone));
  EXPECT_TRUE(fs::exists(folder.path() / held)) << "its writer lives where pids are others";
  ::close(of_a_container);
  remove_abandoned((folder.path() / "m.npz").string());
  EXPECT_EQ(names_of(folder), stay);
  EXPECT_NO_THROW(remove_abandoned((folder.path() / "nowhere/m.npz").string()));
}

// A file that is killed while it is written, as `convert` may be, is gone when the next one is begun.
TEST(HalfWritten, TheNextWriterRemovesWhatAKilledOneLeft) {
  const TempFolder folder;
  const std::string path = (folder.path() / "m.npz").string();
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half");
    ::_exit(0);  // as a kill does, without the destructor
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(names_of(folder).size(), 1u);
  write_file(path, "small");
  EXPECT_EQ(names_of(folder).size(), 2u) << "small files are many: nothing is looked for";
  AtomicFile next(path);
  EXPECT_EQ(names_of(folder).size(), 2u);
  const AtomicFile beside(path);
  EXPECT_EQ(names_of(folder).size(), 3u) << "what a living process writes stays";
  next.write("whole");
  next.commit();
  EXPECT_EQ(read_file(path, 10), "whole");
}

}  // namespace
}  // namespace vitrail
