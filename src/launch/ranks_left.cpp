// Which ranks of a job are left when one of them does not come back.
#include <algorithm>

#include "base/text.h"
#include "base/values.h"
#include "launch/launched_job.h"

namespace vitrail {

namespace {

struct HostEntry {
  std::string text, name;
  int64_t slots = 1;
};

std::vector<HostEntry> entries_of(const std::string& hosts) {
  std::vector<HostEntry> entries;
  for (const std::string_view part : split(hosts, ',')) {
    const std::string text(part);
    const size_t colon = text.rfind(':');
    const auto slots =
        colon == std::string::npos ? std::optional<int64_t>() : parse_integer(text.substr(colon + 1));
    entries.push_back({text, slots ? text.substr(0, colon) : text, slots.value_or(1)});
  }
  return entries;
}

// mpirun fills one host after the other; a name that the rank gave itself is surer.
size_t entry_of(size_t rank, const std::string& seen, const std::vector<HostEntry>& entries) {
  const auto same = [&](const HostEntry& entry) {
    return entry.name == seen || entry.name.substr(0, entry.name.find('.')) == seen.substr(0, seen.find('.'));
  };
  const auto named = std::find_if(entries.begin(), entries.end(), same);
  if (!seen.empty() && named != entries.end()) return static_cast<size_t>(named - entries.begin());
  int64_t before = 0;
  for (size_t e = 0; e < entries.size(); ++e)
    if (static_cast<int64_t>(rank) < (before += entries[e].slots)) return e;
  return entries.size() - 1;
}

}  // namespace

RanksLeft ranks_without(int lost, const std::string& hosts, const std::vector<std::string>& seen) {
  RanksLeft left;
  const auto gone = static_cast<size_t>(lost);
  if (lost < 0 || gone >= seen.size()) return left;
  const std::vector<HostEntry> entries = hosts.empty() ? std::vector<HostEntry>() : entries_of(hosts);
  for (size_t r = 0; r < seen.size(); ++r) {
    const bool goes =
        entries.empty() ? r == gone : entry_of(r, seen[r], entries) == entry_of(gone, seen[gone], entries);
    if (!goes) left.ranks.push_back(static_cast<int>(r));
  }
  for (size_t e = 0; e < entries.size(); ++e)
    if (e != entry_of(gone, seen[gone], entries))
      left.hosts += (left.hosts.empty() ? "" : ",") + entries[e].text;
  return left;
}

}  // namespace vitrail
