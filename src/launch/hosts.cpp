#include "launch/hosts.h"

#include <filesystem>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/values.h"

namespace vitrail {

namespace {

constexpr int64_t kMostSlots = 65536;
constexpr size_t kMostBytes = 16 << 20;

int64_t slots_of(const std::string& text, const std::string& where) {
  const auto slots = parse_integer(text);
  VT_REQUIRE(slots && *slots >= 1 && *slots <= kMostSlots, ErrorKind::kUsage,
             "%s has %s slots; expected a number from 1 to %lld", where.c_str(), quoted(text).c_str(),
             static_cast<long long>(kMostSlots));
  return *slots;
}

void add(Hosts& hosts, const std::string& name, int64_t slots, const std::string& where) {
  VT_REQUIRE(!name.empty() && name[0] != '-' && is_printable(name), ErrorKind::kUsage,
             "%s names the host %s; expected a host's name or address", where.c_str(), quoted(name).c_str());
  for (Host& host : hosts.all)
    if (host.name == name) {
      host.slots += slots;
      return;
    }
  hosts.all.push_back({name, slots});
}

void add_line(Hosts& hosts, const std::string& line, const std::string& where) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name, word;
  int64_t slots = 0;
  if (!(words >> name)) return;
  while (words >> word) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const bool most = key == "max_slots" || key == "max-slots";
    if (equals == std::string::npos || (key != "slots" && !most))
      throw Error(ErrorKind::kUsage, strf("%s holds %s", where.c_str(), quoted(word).c_str()),
                  "lines of a host and its slots, as: vt1 slots=2");
    const int64_t number = slots_of(word.substr(equals + 1), where);
    if (!most) slots = number;
  }
  if (slots == 0)
    throw Error(ErrorKind::kUsage,
                strf("%s does not say how many ranks %s is for", where.c_str(), quoted(name).c_str()),
                strf("%s slots=2", shown(name).c_str()));
  add(hosts, name, slots, where);
}

// Returns whether a word is meant as a file: with a folder, or with an ending that no host has.
bool looks_like_file(const std::string& value) {
  const std::string ending = std::filesystem::path(value).extension();
  for (const char* known : {".txt", ".hosts", ".hostfile", ".machines", ".list", ".conf", ".cfg"})
    if (ending == known) return true;
  return value.find('/') != std::string::npos;
}

Hosts from_file(const std::string& path) {
  Hosts hosts{.text = path, .is_file = true};
  std::istringstream lines(read_file(path, kMostBytes));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number)
    add_line(hosts, line, strf("%s:%d", shown(path).c_str(), number));
  VT_REQUIRE(!hosts.all.empty(), ErrorKind::kUsage, "the hostfile %s names no host", quoted(path).c_str());
  return hosts;
}

}  // namespace

int64_t Hosts::slots() const {
  return std::accumulate(all.begin(), all.end(), int64_t{0},
                         [](int64_t sum, const Host& host) { return sum + host.slots; });
}

Hosts hosts_from(const std::string& value) {
  std::error_code unknown;
  if (value.empty()) return {};
  if (std::filesystem::exists(value, unknown)) return from_file(value);
  if (looks_like_file(value))
    throw Error(ErrorKind::kUsage, strf("--hosts %s: there is no such file", quoted(value).c_str()),
                "a file with lines as \"vt1 slots=2\", or the hosts themselves: --hosts vt1:2,vt2:2");
  Hosts hosts{.text = value};
  for (const std::string_view piece : split(value, ',')) {
    const std::string one(piece);
    const size_t colon = one.rfind(':');
    add(hosts, one.substr(0, colon),
        colon == std::string::npos ? 1 : slots_of(one.substr(colon + 1), "--hosts"), "--hosts");
  }
  return hosts;
}

void require_slots(const Hosts& hosts, int64_t ranks) {
  if (hosts.empty() || ranks <= hosts.slots()) return;
  throw Error(ErrorKind::kUsage,
              strf("%lld ranks do not fit the %lld slots of %s", static_cast<long long>(ranks),
                   static_cast<long long>(hosts.slots()), quoted(hosts.text).c_str()),
              strf("-n %lld, or more slots", static_cast<long long>(hosts.slots())));
}

}  // namespace vitrail
