// A command writes here: data to stdout, messages to stderr. This implements --json, --quiet, -v and
// NO_COLOR, and a closed pipe. It is the only code that writes to the terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vitrail::cli {

// Thrown when the reader of stdout has closed the pipe: the program ends quietly.
struct ClosedPipe {};

struct ConsoleSettings {
  static constexpr int kNowhere = -1;  // a descriptor: what is written there is dropped
  int out_fd = 1, err_fd = 2;
  bool json = false, quiet = false, verbose = false;
  bool out_terminal = false, err_terminal = false;
  bool colour = true;  // allowed; used on terminals only
  int width = 100;     // columns of the terminal, or the default
};

// Returns the settings that the descriptors and the environment (NO_COLOR, TERM) imply; the caller applies
// flags.
ConsoleSettings detect_console();

class Console {
 public:
  explicit Console(const ConsoleSettings& settings) : settings_(settings) {}
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  const ConsoleSettings& settings() const { return settings_; }
  bool json() const { return settings_.json; }

  // Prints text for people on stdout; dropped with --json. No newline is added.
  void print(std::string_view text);
  // Prints one JSON value and a newline on stdout; dropped without --json.
  void print_json(const nlohmann::ordered_json& value);
  // Writes bytes on stdout, with and without --json.
  void write(std::string_view bytes);
  bool pending() const { return !pending_.empty(); }
  // Flushes stdout. Throws ClosedPipe, or Error(kWrite) when stdout cannot be written.
  void flush();

  // Each of these writes one line on stderr.
  void say(std::string_view line);     // unless --quiet
  void detail(std::string_view line);  // with -v only
  void error(std::string_view line);   // always: an error, --quiet or not

  // Shows one line on a terminal's stderr that the next call replaces; text written meanwhile clears it
  // first.
  void show_bar(std::string_view line);
  void clear_bar();

  // These mark text for stdout when it is a terminal and colour is allowed, and return it unchanged
  // otherwise.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;

 private:
  ConsoleSettings settings_;
  std::string pending_;
  bool bar_shown_ = false;
};

}  // namespace vitrail::cli
