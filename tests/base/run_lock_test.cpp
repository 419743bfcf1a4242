#include "base/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/process_mark.h"

namespace vitrail {
namespace {

class RunLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrail-lock-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string refusal() const { return refusal_of(folder_); }
  static std::string refusal_of(const std::string& folder) {
    try {
      const RunLock lock(folder);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kWrite);
      return error.what();
    }
    return "";
  }
  std::string folder_;
};

// A process that takes the lock, says so, and waits to be killed.
class Holder {
 public:
  explicit Holder(const std::string& folder) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const RunLock lock(folder);
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_F(RunLockTest, ASecondRunIsRefusedByName) {
  const Holder holder(folder_);
  const std::string text = refusal();
  EXPECT_NE(text.find(strf("process %d on ", holder.pid())), std::string::npos) << text;
  EXPECT_NE(text.find(ProcessMark::current().host), std::string::npos) << text;
  EXPECT_NE(text.find(folder_), std::string::npos) << text;
}

TEST_F(RunLockTest, SaysSinceWhen) {
  const auto now = [] {
    const std::time_t seconds = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return std::string(text);
  };
  const std::string before = now();
  const RunLock lock(folder_);
  const std::string text = read_file(folder_ + "/run.lock", 4096);
  const std::string since = text.substr(text.find("\"since\": \"") + 10, before.size());
  EXPECT_LE(before, since);
  EXPECT_LE(since, now());
}

TEST_F(RunLockTest, WithinOneProcessToo) {
  {
    const RunLock lock(folder_);
    EXPECT_TRUE(lock.note().empty());
    EXPECT_NE(refusal(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run.lock"));
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunLockTest, TheLockOfADeadRunIsTakenOverAndSaid) {
  Holder holder(folder_);
  const pid_t pid = holder.pid();
  holder.end();
  ASSERT_TRUE(std::filesystem::exists(folder_ + "/run.lock"));
  const RunLock lock(folder_);
  EXPECT_NE(lock.note().find(strf("abandoned by process %d", pid)), std::string::npos) << lock.note();
  EXPECT_NE(refusal(), "");
}

TEST_F(RunLockTest, AnyContentOfAFreeLockFileIsTakenOver) {
  for (const char* content : {"", "{", "{\"process\": 7}", "{\"process\": \"a-b\", \"since\": 1}", "\xFF"}) {
    write_file(folder_ + "/run.lock", content);
    const RunLock lock(folder_);
    EXPECT_TRUE(lock.note().empty());
  }
}

TEST_F(RunLockTest, LinksAmongTheFilesOfARunAreRefused) {
  const std::string outside = folder_ + "-outside";
  write_file(outside, "precious");
  for (const char* name : {"run.lock", "config.json"}) {
    std::filesystem::create_symlink(outside, folder_ + "/" + name);
    EXPECT_NE(refusal().find(std::string(name) + " is a link"), std::string::npos) << refusal();
    EXPECT_EQ(read_file(outside, 100), "precious");
    std::filesystem::remove(folder_ + "/" + name);
  }
  std::filesystem::create_directory_symlink("/tmp", folder_ + "/checkpoints");
  EXPECT_EQ(refusal(), "");
  std::filesystem::remove(outside);
}

// A run that ends deletes its lock file, which another may just have opened: a lock on a deleted file holds
// nobody off.
TEST_F(RunLockTest, AFileThatIsDeletedWhileItIsTakenIsNoLock) {
  std::atomic<int> taken{0}, unnamed{0};
  const auto take = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) try {
        const RunLock lock(folder_);
        ++taken;
        unnamed += !std::filesystem::exists(folder_ + "/run.lock");
      } catch (const Error&) {  // another has it
      }
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(take);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken, 0);
  EXPECT_EQ(unnamed, 0) << "of " << taken;
}

TEST_F(RunLockTest, AFolderThatCannotBeWritten) {
  EXPECT_NE(refusal_of(folder_ + "/none").find("none/run.lock"), std::string::npos);
  write_file(folder_ + "/file", "x");
  EXPECT_NE(refusal_of(folder_ + "/file").find("file/run.lock"), std::string::npos);
}

TEST(ProcessMark, TextThereAndBack) {
  const ProcessMark self = ProcessMark::current();
  EXPECT_EQ(ProcessMark::parse(self.text()), self);
  EXPECT_GT(self.start, 0u);
  for (const char* text : {"", "-", "h-1", "h--1-2", "-1-2", "h-0-2", "h-1-", "h-01-2", "h-1-2x",
                           "h-99999999999-2", "h-1-99999999999999999999"})
    EXPECT_FALSE(ProcessMark::parse(text)) << text;
}

TEST(ProcessMark, KnowsTheDead) {
  ProcessMark mark = ProcessMark::current();
  EXPECT_FALSE(mark.surely_dead());
  ++mark.start;
  EXPECT_TRUE(mark.surely_dead());  // the number is another process's now
  mark.start = 0;
  EXPECT_FALSE(mark.surely_dead());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  mark.pid = child;
  EXPECT_TRUE(mark.surely_dead());  // ended, though nobody asked how
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(mark.surely_dead());
  mark.host += "x";
  EXPECT_FALSE(mark.surely_dead());
}

}  // namespace
}  // namespace vitrail
