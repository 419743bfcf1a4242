#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"

namespace vitrail::cli {

namespace {
constexpr size_t kFlushBytes = 1 << 16;

// Returns 0, or the error number of the write that failed.
int write_all(int fd, std::string_view bytes) {
  if (fd == ConsoleSettings::kNowhere) return 0;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

constexpr std::string_view kBold = "\033[1m", kDim = "\033[2m", kNormal = "\033[0m", kErase = "\033[K";

// Does what printable() does, but keeps the marks of bold() and dim().
std::string safe(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto begins = [&](std::string_view mark) { return text.starts_with(mark); };
    size_t length = begins(kBold)     ? kBold.size()
                    : begins(kDim)    ? kDim.size()
                    : begins(kNormal) ? kNormal.size()
                                      : 0;
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      length = std::min(text.find('\033', 1), text.size());
      out += printable(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string marked(std::string_view mark, std::string_view text) {
  return std::string(mark).append(text).append(kNormal);
}

bool environment_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}
}  // namespace

ConsoleSettings detect_console() {
  ConsoleSettings settings;
  settings.out_terminal = ::isatty(settings.out_fd) == 1;
  settings.err_terminal = ::isatty(settings.err_fd) == 1;
  const char* term = std::getenv("TERM");
  const bool dumb = !term || std::strcmp(term, "dumb") == 0;
  settings.colour = !environment_set("NO_COLOR") && !dumb;
  winsize size{};
  const int fd = settings.out_terminal ? settings.out_fd : settings.err_fd;
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    settings.width = std::clamp<int>(size.ws_col, 40, 160);
  return settings;
}

Console::~Console() {
  if (!pending_.empty()) write_all(settings_.out_fd, pending_);
}

void Console::print(std::string_view text) {
  if (!settings_.json) write(safe(text));
}

void Console::print_json(const nlohmann::ordered_json& value) {
  if (!settings_.json) return;
  // Names and labels come from files, so invalid UTF-8 is replaced rather than refused.
  write(printable(json_text(value)) + "\n");
}

void Console::write(std::string_view bytes) {
  pending_ += bytes;
  if (pending_.size() >= kFlushBytes) flush();
}

void Console::flush() {
  if (settings_.out_terminal && !pending_.empty()) clear_bar();
  std::string bytes;
  bytes.swap(pending_);
  const int failure = write_all(settings_.out_fd, bytes);
  if (failure == EPIPE) throw ClosedPipe{};
  if (failure != 0)
    throw Error(ErrorKind::kWrite, strf("cannot write to stdout: %s", std::strerror(failure)));
}

void Console::say(std::string_view line) {
  if (!settings_.quiet) error(safe(line));
}

void Console::error(std::string_view line) {
  clear_bar();
  write_all(settings_.err_fd, std::string(line) + "\n");
}

void Console::detail(std::string_view line) {
  if (settings_.verbose) say(line);
}

// A bar that cannot be written does not stop the command.
void Console::show_bar(std::string_view line) {
  write_all(settings_.err_fd, "\r" + safe(line).append(kErase));
  bar_shown_ = true;
}

void Console::clear_bar() {
  if (bar_shown_) write_all(settings_.err_fd, std::string("\r").append(kErase));
  bar_shown_ = false;
}

std::string Console::bold(std::string_view text) const {
  const bool on = settings_.colour && settings_.out_terminal;
  return on ? marked(kBold, text) : std::string(text);
}

std::string Console::dim(std::string_view text) const {
  const bool on = settings_.colour && settings_.out_terminal;
  return on ? marked(kDim, text) : std::string(text);
}

}  // namespace vitrail::cli
