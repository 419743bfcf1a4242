// Finds which ranks of a job are left when one of them does not come back, and how it goes on with them.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/launched_job.h"
#include "train/balance.h"

namespace vitrail {

namespace {

// mpirun fills one host after the other; a name that the rank gave itself is surer.
size_t host_of(size_t rank, const std::string& seen, const std::vector<Host>& hosts) {
  const auto same = [&](const Host& host) {
    return host.name == seen || host.name.substr(0, host.name.find('.')) == seen.substr(0, seen.find('.'));
  };
  const auto named = std::find_if(hosts.begin(), hosts.end(), same);
  if (!seen.empty() && named != hosts.end()) return static_cast<size_t>(named - hosts.begin());
  int64_t before = 0;
  for (size_t h = 0; h < hosts.size(); ++h)
    if (static_cast<int64_t>(rank) < (before += hosts[h].slots)) return h;
  return hosts.size() - 1;
}

}  // namespace

RanksLeft ranks_without(int lost, const Hosts& hosts, const std::vector<std::string>& seen) {
  RanksLeft left;
  const auto gone = static_cast<size_t>(lost);
  if (lost < 0 || gone >= seen.size()) return left;
  const auto place = [&](size_t rank) { return hosts.empty() ? rank : host_of(rank, seen[rank], hosts.all); };
  for (size_t r = 0; r < seen.size(); ++r)
    if (place(r) != place(gone)) left.ranks.push_back(static_cast<int>(r));
  for (size_t h = 0; h < hosts.all.size(); ++h) {
    const Host& host = hosts.all[h];
    if (h == place(gone)) continue;
    left.hosts.all.push_back(host);
    left.hosts.text += strf("%s%s:%lld", left.hosts.text.empty() ? "" : ",", host.name.c_str(),
                            static_cast<long long>(host.slots));
  }
  return left;
}

std::vector<std::string> options_for_fewer(const TrainConfig& config, int was, std::string& threads,
                                           std::vector<int>& left) {
  left.resize(static_cast<size_t>(usable_ranks(config.mesh, static_cast<int>(left.size()))));
  std::vector<std::string> words;
  if (left.empty()) return words;
  for (const std::string& setting : settings_for_fewer(config, was, static_cast<int>(left.size())))
    words.insert(words.end(), {"--set", setting});
  const std::string before = threads;
  const std::vector<std::string_view> each = split(before, ',');
  if (each.size() < 2) return words;
  threads.clear();
  for (const int rank : left)
    threads += (threads.empty() ? "" : ",") + std::string(each[static_cast<size_t>(rank)]);
  words.insert(words.end(), {"--threads", threads});
  return words;
}

}  // namespace vitrail
