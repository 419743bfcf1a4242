#include "base/process_mark.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>

#include "base/error.h"
#include "base/file.h"

namespace vitrail {

namespace {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name;
  for (char& c : host)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '_';
  return host;
}

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Seen {
  char state = '?';
  uint64_t start = 0;
};

// Reads state and start time from /proc; the second field is the program's name, which may hold any
// characters.
Seen look_up(int64_t pid) {
  Seen seen;
  std::string stat;
  try {
    stat = read_file(strf("/proc/%lld/stat", static_cast<long long>(pid)), 4096);
  } catch (const Error&) {
    return seen;
  }
  size_t at = stat.rfind(')');
  if (at == stat.npos || at + 2 >= stat.size()) return seen;
  seen.state = stat[at + 2];
  for (int field = 2; field < 22 && at != stat.npos; ++field) at = stat.find(' ', at + 1);
  if (at != stat.npos)
    seen.start = parse_whole<uint64_t>(std::string_view(stat).substr(at + 1, stat.find(' ', at + 1) - at - 1))
                     .value_or(0);
  return seen;
}

}  // namespace

ProcessMark ProcessMark::current() {
  const auto pid = static_cast<int64_t>(::getpid());
  return {host_name(), pid, look_up(pid).start};
}

std::string ProcessMark::text() const {
  return strf("%s-%lld-%llu", host.c_str(), static_cast<long long>(pid),
              static_cast<unsigned long long>(start));
}

double ProcessMark::age_s() const {
  timespec now = {};
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (start == 0 || ticks <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double since_boot = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return std::max(0.0, since_boot - static_cast<double>(start) / static_cast<double>(ticks));
}

std::optional<ProcessMark> ProcessMark::parse(std::string_view text) {
  const size_t last = text.rfind('-');
  const size_t middle = last == text.npos || last == 0 ? text.npos : text.rfind('-', last - 1);
  if (middle == text.npos || middle == 0 || text.find('-') != middle) return std::nullopt;
  const auto pid = parse_whole<int64_t>(text.substr(middle + 1, last - middle - 1));
  const auto start = parse_whole<uint64_t>(text.substr(last + 1));
  if (!pid || *pid <= 0 || *pid > INT32_MAX || !start) return std::nullopt;
  const ProcessMark mark{std::string(text.substr(0, middle)), *pid, *start};
  return mark.text() == text ? std::optional(mark) : std::nullopt;
}

bool ProcessMark::surely_dead() const {
  if (host != host_name()) return false;
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  const Seen seen = look_up(pid);
  const bool zombie = seen.state == 'Z' || seen.state == 'X';
  return zombie || (start != 0 && seen.start != 0 && seen.start != start);
}

}  // namespace vitrail
