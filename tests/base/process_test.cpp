// Marks of processes and handlers of signals.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/plugin_library.h"
#include "base/process_mark.h"
#include "base/stop.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

void own_handler(int) {}

TEST(FileOfCode, OfTheProgram) {
  EXPECT_EQ(file_of_code(reinterpret_cast<const void*>(&own_handler)),
            std::filesystem::canonical("/proc/self/exe"));
  const int on_the_stack = 0;
  EXPECT_FALSE(std::filesystem::exists(file_of_code(&on_the_stack)));
  EXPECT_EQ(file_of_code(nullptr), "");
}

// A program may be started with LD_LIBRARY_PATH=lib and change its folder later.
TEST(FileOfCode, OfALibraryWithARelativeName) {
  const TempFolder folder;
  const auto copy = std::filesystem::canonical(folder.path()) / "libcopy.so";
  std::filesystem::copy_file(file_of_code(dlsym(RTLD_DEFAULT, "cos")), copy);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  void* const library = dlopen("./libcopy.so", RTLD_NOW | RTLD_LOCAL);
  std::filesystem::current_path(before);
  ASSERT_NE(library, nullptr) << dlerror();
  const void* const code = dlsym(library, "cos");
  EXPECT_EQ(file_of_code(code), copy);
  std::filesystem::remove(copy);
  EXPECT_EQ(file_of_code(code), copy);
}

TEST(BuildChecksums, AreOfTheProgramAndEveryPluginThatItFinds) {
  const TempFolder folder;
  using Sums = std::map<std::string, std::string>;
  const std::string program = folder.file("bin/vitrail", "123456789");
  EXPECT_EQ(build_checksums(program), (Sums{{"program", "e3069283"}})) << "the known CRC-32C of these digits";
  folder.file("lib/libvitrail_a.so", std::string(3 << 20, 'a'));
  folder.file("lib/vitrail/libvitrail_a.so", "shadowed by the one before it");
  folder.file("lib/libvitrail_b.so.1", "no plugin");
  folder.file("lib/libother.so", "no plugin");
  const Sums before = build_checksums(program);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before.at("program"), "e3069283");
  folder.file("lib/libvitrail_a.so", std::string(3 << 20, 'a') + "b");
  EXPECT_NE(build_checksums(program).at("libvitrail_a.so"), before.at("libvitrail_a.so"));
  std::filesystem::remove(program);
  EXPECT_THROW(build_checksums(program), Error);
}

// Handlers come back when nothing was asked for, and what was ignored stays ignored.
TEST(StopRequests, HandlersAreThoseFromBefore) {
  struct sigaction own {};
  own.sa_handler = own_handler;
  struct sigaction before[std::size(kStopSignals)];
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    own.sa_handler = kStopSignals[i] == SIGHUP ? SIG_IGN : own_handler;
    ::sigaction(kStopSignals[i], &own, &before[i]);
  }
  const auto handler = [](int signal) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    return now.sa_handler;
  };
  {
    const SignalGuard guard;
    EXPECT_FALSE(guard.wanted());
    for (const int signal : kStopSignals) {
      EXPECT_NE(handler(signal), own_handler) << signal;
      EXPECT_EQ(handler(signal) == SIG_IGN, signal == SIGHUP) << signal;
    }
  }
  for (const int signal : kStopSignals)
    EXPECT_EQ(handler(signal), signal == SIGHUP ? SIG_IGN : own_handler) << signal;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) ::sigaction(kStopSignals[i], &before[i], nullptr);
}

TEST(ProcessMarks, TheStartIsTheKernelsField22) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {}), word;
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  for (int field = 3; field <= 22; ++field) rest >> word;
  EXPECT_EQ(std::to_string(ProcessMark::current().start), word);
  EXPECT_EQ(ProcessMark::current().pid, ::getpid());
}

TEST(ProcessMarks, AreReadAsTheyAreWritten) {
  const ProcessMark mark{"host.a_b", 17, 99};
  EXPECT_EQ(mark.text(), "host.a_b-17-99");
  EXPECT_EQ(ProcessMark::parse("host.a_b-17-99"), mark);
  EXPECT_EQ(ProcessMark::parse("h-2147483647-0"), (ProcessMark{"h", INT32_MAX, 0}));
  for (const char* bad :
       {"", "h", "h-1", "-1-2", "h-0-1", "h--1-1", "h-2147483648-1", "h-1-x", "h-01-1", "h-1-2-3", "h-1-"})
    EXPECT_FALSE(ProcessMark::parse(bad)) << bad;
  const ProcessMark self = ProcessMark::current();
  EXPECT_FALSE(self.surely_dead());
  EXPECT_TRUE((ProcessMark{self.host, self.pid, self.start + 1}.surely_dead()));
  EXPECT_FALSE((ProcessMark{self.host, self.pid, 0}.surely_dead())) << "when it began is not known";
  EXPECT_FALSE((ProcessMark{"elsewhere", 1 << 30, 1}.surely_dead()));
  EXPECT_EQ((ProcessMark{"h", 1, 0}.age_s()), 0);
  EXPECT_GT(self.age_s(), 0);
  EXPECT_LT(self.age_s(), 3600);
}

}  // namespace
}  // namespace vitrail
