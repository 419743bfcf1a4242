// Where a command's words go: data to stdout, talk to stderr. Keeps the promises of --json, --quiet, -v,
// NO_COLOR and of a reader that went away. The only code that writes to the terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vitrail::cli {

// stdout's reader has gone: the program ends quietly.
struct ClosedPipe {};

struct ConsoleSettings {
  int out_fd = 1, err_fd = 2;
  bool json = false, quiet = false, verbose = false;
  bool out_terminal = false, err_terminal = false;
  bool colour = true;  // allowed; used on terminals only
  int width = 100;     // columns of the terminal, or the default
};

// What the descriptors and the environment (NO_COLOR, TERM) say; flags are the caller's.
ConsoleSettings detect_console();

class Console {
 public:
  explicit Console(const ConsoleSettings& settings) : settings_(settings) {}
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  const ConsoleSettings& settings() const { return settings_; }
  bool json() const { return settings_.json; }

  // Text for people on stdout; dropped with --json. Ends as given, no newline is added.
  void print(std::string_view text);
  // One JSON value and a newline on stdout; dropped without --json.
  void print_json(const nlohmann::ordered_json& value);
  // Bytes on stdout in either mode.
  void write(std::string_view bytes);
  bool pending() const { return !pending_.empty(); }
  // Hands everything to the reader. Throws ClosedPipe, or Error(kWrite) when stdout cannot take it.
  void flush();

  // Talk: one line on stderr each.
  void say(std::string_view line);       // unless --quiet
  void detail(std::string_view line);    // with -v only
  void complain(std::string_view line);  // always: an error, --quiet or not

  // One line on a terminal's stderr that the next one replaces; text written meanwhile takes it away first.
  void show_bar(std::string_view line);
  void clear_bar();

  // For stdout, when it is a terminal and colour is allowed; unchanged otherwise.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;

 private:
  ConsoleSettings settings_;
  std::string pending_;
  bool bar_shown_ = false;
};

}  // namespace vitrail::cli
