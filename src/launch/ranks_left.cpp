// Which ranks of a job are left when one of them does not come back.
#include <algorithm>

#include "base/error.h"
#include "launch/launched_job.h"

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

}  // namespace vitrail
