// The program as it is installed, bin/NAME beside lib/vitrail: where it finds the programs that came with it,
// and what it makes of the nodes that one of them tells of. This test program stands for it, under a link of
// its own, and a script for the one that makes network namespaces.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "io/find_model.h"
#include "launch/child_process.h"
#include "launch/environment.h"
#include "launch/namespace_nodes.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

constexpr const char* kAsked = "VITRAIL_TEST_INSTALLED";  // what to tell: a program's name, or "nodes"

// Where the environment asks, this process tells it and ends.
[[maybe_unused]] const bool kTells = [] {
  const char* asked = environment_variable(kAsked);
  if (!asked) return false;
  const std::string failure = thrown_by([&] {
    if (std::string_view(asked) != "nodes") {
      std::cout << own_program(asked, "make it") << "\n";
      return;
    }
    const NamespaceNodes nodes("a study", 2, "1gbit");
    for (const std::string& name : nodes.names()) std::cout << name << "\n";
    for (const auto& [name, value] : nodes.environment()) std::cout << name << " is " << value << "\n";
  });
  std::cout << failure << std::endl;
  ::_exit(0);
}();

class Installed : public testing::Test {
 protected:
  Installed() {
    namespace fs = std::filesystem;
    fs::create_directories(folder_.path() / "bin");
    std::error_code other_disk;
    fs::create_hard_link(this_program(), program(), other_disk);
    if (other_disk) fs::copy_file(this_program(), program());
  }
  std::filesystem::path program() const { return folder_.path() / "bin" / this_program().filename(); }
  std::string script(const std::string& name, const std::string& text) const {
    std::string file = folder_.file(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  std::string told(const std::string& asked) const {
    const ProgramEnd end = run_program({program().string()}, {{kAsked, asked}}, [] { return true; });
    EXPECT_EQ(end.code, 0) << end.err;
    return end.out;
  }
  TempFolder folder_;
};

TEST_F(Installed, ProgramsLieBesideItOrInItsLibrary) {
  const std::string missing = "device: helper is not beside this program | make it\n";
  EXPECT_EQ(told("helper"), missing);
  folder_.file("lib/vitrail/helper", "no program");
  EXPECT_EQ(told("helper"), missing) << "it cannot be run";
  const std::string library = script("lib/vitrail/helper", "");
  EXPECT_EQ(told("helper"), library + "\nnothing\n");
  const std::string beside = script("bin/helper", "");
  EXPECT_EQ(told("helper"), beside + "\nnothing\n") << "first";
  std::filesystem::create_directory(folder_.path() / "bin/folder");
  EXPECT_NE(told("folder").find("is not beside"), std::string::npos);
}

TEST_F(Installed, NodesAreThoseThatTheScriptTellsOf) {
  const std::string log = folder_.file("log", "");
  script("lib/vitrail/vitrail-nodes",
         "echo \"$*\" >> " + log +
             "\nsleep 0.3\n[ $1 = up ] && echo A=b && echo no variable && echo C=d=e\nexit 0\n");
  const std::string out = told("nodes");
  if (::geteuid() != 0) {
    EXPECT_EQ(out,
              "device: network namespaces can be made by root only | as root, with iproute2: apt install "
              "iproute2\n");
    return;
  }
  const std::string name = out.substr(0, out.find('\n') - 1);
  ASSERT_TRUE(name.starts_with("vs") && name.size() == 8) << out;
  EXPECT_EQ(out, name + "1\n" + name + "2\nA is b\nC is d=e\nnothing\n");
  std::ifstream calls(log);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(calls), {}}),
            "down " + name + "\nup " + name + " 2\nrate " + name + " 1gbit\ndown " + name + "\n");
}

TEST_F(Installed, NodesThatCannotBeMadeAreTakenDown) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes them";
  const std::string log = folder_.file("log", "");
  script("lib/vitrail/vitrail-nodes",
         "echo $1 >> " + log + "\n[ $1 = down ] && exit 0\necho no bridge >&2\nexit 2\n");
  EXPECT_EQ(
      told("nodes"),
      "device: no nodes can be made of network namespaces: \"no bridge\\x0a\" | as root, with iproute2: apt "
      "install "
      "iproute2\n");
  std::ifstream calls(log);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(calls), {}}), "down\nup\ndown\n");
}

}  // namespace
}  // namespace vitrail
