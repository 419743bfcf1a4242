#include "cli/console.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/help.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "telemetry/format.h"

namespace vitrail::cli {
namespace {

// Two pipes in place of stdout and stderr.
struct Captured {
  Captured() {
    EXPECT_EQ(::pipe(out), 0);
    EXPECT_EQ(::pipe(err), 0);
    settings.out_fd = out[1];
    settings.err_fd = err[1];
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
  }
  // What was written so far; at most what a pipe holds.
  static std::string read(const int (&ends)[2]) {
    if (::write(ends[1], "$", 1) != 1) return "?";
    std::string text(1 << 16, '\0');
    const ssize_t got = ::read(ends[0], text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(got - 1, 0)));
    return text;
  }
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  ConsoleSettings settings;
};

TEST(Console, DataAndTalkNeverMix) {
  for (const bool json : {false, true}) {
    Captured pipes;
    pipes.settings.json = json;
    Console console(pipes.settings);
    console.print("table\n");
    console.print_json({{"a", 1}});
    console.say("talk");
    console.detail("detail");
    console.flush();
    EXPECT_EQ(Captured::read(pipes.out), json ? "{\"a\":1}\n" : "table\n");
    EXPECT_EQ(Captured::read(pipes.err), "talk\n");
  }
}

// Names come from files, and files from anywhere.
TEST(Console, NothingFromOutsideReachesTheTerminalAsACommand) {
  const std::string name = "a\033]0;title\a\u009b2J\u202egnp\x7f\r.jpg";
  for (const bool json : {false, true}) {
    Captured pipes;
    pipes.settings.json = json;
    pipes.settings.colour = pipes.settings.out_terminal = true;
    Console console(pipes.settings);
    console.print(console.bold(name) + "\n");
    console.print_json({{"image", name}});
    console.say("warning: " + name);
    console.error(
        format_error(Error(ErrorKind::kData, "broken " + name, "not " + name).at(name), true, false));
    console.flush();
    std::string out = Captured::read(pipes.out);
    const std::string err = Captured::read(pipes.err);
    if (json) {
      EXPECT_EQ(nlohmann::json::parse(out).at("image"), name) << "lossless";
    }
    if (!json) {
      EXPECT_TRUE(out.starts_with("\033[1ma")) << "bold stays: " << out;
    }
    for (const std::string& text : {out, err})
      for (const char* order : {"\033]", "\a", "\u009b", "\u202e", "\x7f", "\r"})
        EXPECT_EQ(text.find(order), std::string::npos) << text;
  }
}

TEST(Console, QuietAndVerbose) {
  Captured pipes;
  pipes.settings.verbose = true;
  Console(pipes.settings).detail("more");
  pipes.settings.quiet = true;
  Console(pipes.settings).say("talk");
  Console(pipes.settings).detail("more");
  Console(pipes.settings).error("error");
  EXPECT_EQ(Captured::read(pipes.err), "more\nerror\n");
}

TEST(Console, InvalidTextInJsonIsReplaced) {
  Captured pipes;
  pipes.settings.json = true;
  Console console(pipes.settings);
  console.print_json({{"name", "\xff"}});
  console.flush();
  EXPECT_TRUE(nlohmann::json::accept(Captured::read(pipes.out)));
}

TEST(Console, AReaderThatLeftEndsTheProgramQuietly) {
  std::signal(SIGPIPE, SIG_IGN);
  Captured pipes;
  ::close(pipes.out[0]);
  Console console(pipes.settings);
  console.write("data\n");
  EXPECT_THROW(console.flush(), ClosedPipe);
}

// The console of a rank that does not speak.
TEST(Console, WhatIsWrittenNowhereIsDropped) {
  Console console(ConsoleSettings{.out_fd = ConsoleSettings::kNowhere, .err_fd = ConsoleSettings::kNowhere});
  console.write("data\n");
  console.say("talk");
  EXPECT_NO_THROW(console.flush());
  EXPECT_FALSE(console.pending());
}

TEST(Console, ColourOnlyOnATerminalThatWantsIt) {
  ConsoleSettings settings;
  EXPECT_EQ(Console(settings).bold("x"), "x");
  settings.out_terminal = true;
  EXPECT_EQ(Console(settings).bold("x"), "\033[1mx\033[0m");
  EXPECT_EQ(Console(settings).dim("x"), "\033[2mx\033[0m");
  settings.colour = false;
  EXPECT_EQ(Console(settings).bold("x"), "x");
  EXPECT_EQ(Console(settings).dim("x"), "x");
}

TEST(Console, TextTakesTheBarAwayFirst) {
  Captured pipes;
  pipes.settings.out_terminal = pipes.settings.err_terminal = true;
  Console console(pipes.settings);
  console.show_bar("50 %");
  console.write("data\n");
  console.flush();
  console.say("talk");
  console.clear_bar();
  EXPECT_EQ(Captured::read(pipes.err), "\r50 %\033[K\r\033[Ktalk\n");
  EXPECT_EQ(Captured::read(pipes.out), "data\n");
}

TEST(Progress, PlainLine) {
  const ProgressState state{"predict", "images", 120, 500, 2, "loss 0.4"};
  EXPECT_EQ(format_progress_line(state),
            "predict: 120/500 images (24 %)  60.0 images/s  ETA 6.33 s  loss 0.4");
  EXPECT_EQ(format_progress_line({"bench", "runs", 7, 0, 0.5, ""}), "bench: 7 runs  14.0 runs/s");
  EXPECT_EQ(format_progress_line({"bench", "runs", 0, 10, 0.5, ""}), "bench: 0/10 runs (0 %)");
}

TEST(Progress, BarFitsTheTerminal) {
  const ProgressState state{"predict", "images", 120, 500, 2, "loss 0.4"};
  EXPECT_NE(format_progress_bar(state, 120).find("█"), std::string::npos);
  for (int width = 1; width < 120; ++width)
    EXPECT_LE(display_width(format_progress_bar(state, width)), static_cast<size_t>(width)) << width;
}

TEST(Progress, SaysNothingWhenQuietOrOverAtOnce) {
  for (const bool quiet : {false, true}) {
    Captured pipes;
    pipes.settings.quiet = quiet;
    Console console(pipes.settings);
    Progress progress(console, "predict", "images", 3);
    for (int i = 0; i < 3; ++i) progress.advance(1);
    progress.finish();
    EXPECT_EQ(Captured::read(pipes.err), "");
  }
}

TEST(ErrorScreen, WhatWhereTry) {
  Error error(ErrorKind::kData, "two lines\nof it", "look");
  error.at("inner").at("outer");
  EXPECT_EQ(format_error(error, false, false),
            "error: two lines\n    of it\n  at: outer\n  at: inner\n  try: look");
  EXPECT_NE(format_error(error, false, true).find("kind: data, exit code 65"), std::string::npos);
  EXPECT_NE(format_error(error, true, false).find("\033["), std::string::npos);
  error.at("outer");
  EXPECT_EQ(format_error(error, false, false),
            "error: two lines\n    of it\n  at: outer\n  at: inner\n  try: look");
}

TEST(Help, ListsExamplesFirstAndEveryOption) {
  const CommandSpec command = {.name = "sample",
                               .summary = "does things",
                               .examples = {{"sample x", "the first"}},
                               .options = {{.name = "long-option-name-that-is-too-long-for-a-column",
                                            .help = std::string(300, 'w') + " end",
                                            .metavar = "N"},
                                           {.name = "model.depth", .help = "blocks", .metavar = "N"}},
                               .positionals = {{"IN", "input", 0, 1}}};
  const std::string page = help_page(command, 80);
  EXPECT_LT(page.find("Examples:"), page.find("Options:"));
  EXPECT_NE(page.find("Usage: vitrail sample [options] [IN]"), std::string::npos);
  for (const OptionSpec& spec : all_options(command))
    if (spec.name.find('.') == std::string::npos) {
      EXPECT_NE(page.find("--" + spec.name), std::string::npos);
    }
  EXPECT_NE(page.find("model.depth=N"), std::string::npos);
  EXPECT_EQ(page.find("--model.depth"), std::string::npos);
}

// Beside the names of options there is always room for helps.
TEST(Help, ATableIsSixtyColumnsWideAtLeast) {
  const CommandSpec command = {
      .name = "sample",
      .summary = "s",
      .examples = {},
      .options = {{.name = "a", .help = "one two three four five six seven eight", .metavar = "N"}}};
  const auto table = [&](int width) {
    const std::string page = help_page(command, width);
    const size_t begin = page.find("\nOptions:"), end = page.find("\nCommon options:");
    return page.substr(begin, end - begin);
  };
  EXPECT_EQ(table(40), table(60));
  EXPECT_NE(table(61), table(80));
  EXPECT_EQ(table(60), "\nOptions:\n      --a N                 one two three four five six\n" +
                           std::string(28, ' ') + "seven eight\n");
}

TEST(Help, WrapsAtTheWidth) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  const CommandSpec command = {.name = "sample",
                               .summary = "s",
                               .examples = {},
                               .options = {{.name = "a", .help = words, .metavar = "N"}}};
  std::string line;
  for (const char c : help_page(command, 80)) {
    if (c != '\n') {
      line += c;
      continue;
    }
    EXPECT_LE(display_width(line), 80u) << line;
    line.clear();
  }
}

}  // namespace
}  // namespace vitrail::cli
