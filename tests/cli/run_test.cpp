// The program from its words to its exit code: which command they name, what is refused before one runs, and
// what a terminal changes.
#include "cli/run.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/text.h"
#include "base/values.h"
#include "cli/help.h"
#include "run_words.h"
#include "stored_text.h"
#include "vitrail/version.h"

namespace vitrail::cli {
namespace {

using Call = std::vector<std::string>;

// Each ends before anything is read or computed.
const Call kCalls[] = {
    {},
    {"--help"},
    {"bench"},
    {"bench", "--json"},
    {"bench", "-h"},
    {"bench", "infr"},
    {"bench", "zzzzzzzzzz"},
    {"data"},
    {"data", "--help"},
    {"predcit"},
    {"zzzzzzzzzz"},
    {"--json", "doctor"},
    {"doctor", "something"},
    {"doctor", "--dtype", "bf16"},
    {"doctor", "--device", "cuda"},
    {"predict"},
    {"predict", "--dtype", "f16", "x.jpg"},
    {"predict", "--embed", "--logits", "x.jpg"},
    {"predict", "--top-kk", "5", "x.jpg"},
    {"train", "--dtype", "f16", "--max-time", "0"},
    {"train", "--max-time", "0s"},
    {"train", "--max-time", "-1m"},
    {"train", "--max-time", "soon"},
    {"train", "--max-time", "5d"},
    {"launch"},
    {"launch", "-n", "2"},
    {"launch", "-n", "2", "doctor", "--bogus"},
    {"launch", "-n", "2", "predict", "--bogus", "x.jpg"},
    {"launch", "-n", "2", "predict", "-"},
    {"launch", "launch", "predict", "x.jpg"},
    {"launch", "zzzzzzzzzz"},
    {"launch", "--mpirun", "--rank-threads", "train"},
    {"launch", "--mpirun", "doctor"},
    {"launch", "--rank-threads", "doctor"},
    {"launch", "--rank-threads", "--hosts", "a:1", "train"},
    {"launch", "-n", "3", "--hosts", "a:2", "train"},
    {"launch", "--max-restarts", "1", "predict", "x.jpg"},
    {"launch", "--allow-fewer", "train"},
    {"launch", "--allow-fewer", "--max-restarts", "1", "--hosts", "nowhere.invalid:1", "train", "--deepspeed",
     "ds.json"},
    {"verify", "a"},
    {"verify", "a", "--update"},
    {"verify", "a", "--update", "--debug"},
    {"verify", "--manifest", "a", "b"},
    {"inspect"},
    {"profile", "--train", "--beside", "cpu"},
    {"profile", "--mesh", "dp=2", "--beside", "cpu"},
    {"profile", "--ranks", "3", "--sweep", "threads=1,2"},
    {"profile", "--train", "--ranks", "2", "--sweep", "threads=1,2"},
    {"profile", "-m", "vit_tiny_patch16_224", "--weights", "rule", "--beside", "seed-000"},
    {"profile", "-m", "vit_base_patch16_224", "--weights", "rule", "--batch", "2", "--beside", "seed-000"},
    {"bench", "tune", "--train"},
    {"bench", "tune", "--set", "batch=2"},
    {"bench", "infer", "--mesh", "dp=2", "--compare", "x.json"},
};

TEST(Run, WhatEndsBeforeAnythingRunsIsTheStoredText) {
  std::string text;
  for (const Call& call : kCalls) {
    // No host answers, should a job be started.
    const Ended ended = run_words(call, {{"OMPI_MCA_plm_rsh_agent", "/nowhere/agent"}});
    text += strf("$ vitrail %s\nexit code %d\n", join(call, " ").c_str(), ended.code);
    text += (ended.out.empty() ? "" : "stdout:\n" + ended.out) +
            (ended.err.empty() ? "" : "stderr:\n" + ended.err);
    text += "\n";
  }
  expect_stored("golden/told/run.txt", text);
}

TEST(Run, OtherWordsForAPageShowTheSamePage) {
  const auto page = [](const Call& call) {
    const Ended ended = run_words(call);
    EXPECT_EQ(ended.code, 0) << join(call, " ");
    EXPECT_EQ(ended.err, "");
    return ended.out;
  };
  EXPECT_EQ(page({"help"}), page({"--help"}));
  EXPECT_EQ(page({"-h"}), page({"--help"}));
  EXPECT_EQ(page({"help", "bench"}), page({"bench", "--help"}));
  EXPECT_EQ(page({"help", "bench", "infer"}), page({"bench", "--infer", "-h"}));
  EXPECT_EQ(page({"data", "check", "--nonsense", "--help"}), help_page(data_check_command().spec, 100));
  EXPECT_EQ(page({"--version"}), std::string("vitrail ") + version() + "\n");
  EXPECT_EQ(page({"-V"}), page({"--version"}));
}

// What the environment says is a wish for all commands, so one that has no use for it goes on.
TEST(Run, TuningAProcessorPassesOverWhatTheEnvironmentSaysOfModels) {
  const TempFolder folder;
  const std::string out = (folder.path() / "kernels.json").string();
  const Call tune = {"bench", "tune", "--gemm", "5x16x8", "--rounds", "1", "--threads", "1", "-o", out};
  const Ended ended = run_words(tune, {{"VITRAIL_BATCH", "2"}, {"VITRAIL_MODEL", "vit_tiny_patch16_224"}});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(std::filesystem::exists(out));
  Call said = tune;
  said.insert(said.end(), {"--batch", "2"});
  EXPECT_EQ(run_words(said).code, 64);
}

// A terminal in place of stdout, so many columns wide.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(::grantpt(master_), 0);
    EXPECT_EQ(::unlockpt(master_), 0);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    termios plain{};
    ::tcgetattr(slave_, &plain);
    ::cfmakeraw(&plain);
    ::tcsetattr(slave_, TCSANOW, &plain);
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(slave_, TIOCSWINSZ, &size), 0);
  }
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int fd() const { return slave_; }
  // What was written so far, after a mark that ends it.
  std::string text() const {
    EXPECT_EQ(::write(slave_, "\x04", 1), 1);
    std::string all;
    for (char c = 0; ::read(master_, &c, 1) == 1 && c != '\x04';) all += c;
    return all;
  }

 private:
  int master_, slave_ = -1;
};

std::string page_at(unsigned short columns, const Call& call) {
  const Terminal terminal(columns);
  {
    const Redirected out(STDOUT_FILENO, terminal.fd());
    EXPECT_EQ(run(call), 0);
  }
  return terminal.text();
}

// Pages are as wide as the terminal, up to 100 columns; a terminal that does not say counts as 100.
TEST(Run, PagesAreAsWideAsTheTerminalUpToALimit) {
  std::vector<CommandSpec> all, bench;
  for (const Command& command : commands()) {
    all.push_back(command.spec);
    if (command.spec.name.starts_with("bench ")) bench.push_back(command.spec);
  }
  const std::pair<unsigned short, int> widths[] = {{0, 100}, {1, 40},  {39, 40},  {41, 41},
                                                   {72, 72}, {99, 99}, {140, 100}};
  for (const auto& [columns, width] : widths) {
    SCOPED_TRACE(columns);
    EXPECT_EQ(page_at(columns, {"--help"}), overview_page(all, width));
    EXPECT_EQ(page_at(columns, {"bench", "--help"}), group_page("bench", bench, width));
    EXPECT_EQ(page_at(columns, {"doctor", "--help"}), help_page(doctor_command().spec, width));
  }
}

TEST(Run, ATerminalIsKnownWithItsColumns) {
  const SetVariable term("TERM", "xterm"), colour("NO_COLOR", nullptr);
  const std::pair<unsigned short, int> widths[] = {{0, 100},   {1, 40},    {40, 40},
                                                   {120, 120}, {160, 160}, {161, 160}};
  for (const auto& [columns, width] : widths) {
    const Terminal terminal(columns);
    const Redirected out(STDOUT_FILENO, terminal.fd());
    const ConsoleSettings found = detect_console();
    EXPECT_EQ(found.width, width) << columns;
    EXPECT_TRUE(found.out_terminal && found.colour);
    const SetVariable none("NO_COLOR", "1");
    EXPECT_FALSE(detect_console().colour);
    const SetVariable empty("NO_COLOR", ""), dumb("TERM", "dumb");
    EXPECT_FALSE(detect_console().colour);
  }
}

}  // namespace
}  // namespace vitrail::cli
