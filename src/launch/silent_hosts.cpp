// Finds the hosts that nothing can be started on, by starting `true` on all of them at once.
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "base/timing.h"
#include "launch/child_process.h"
#include "launch/environment.h"
#include "launch/hosts.h"

namespace vitrail {

namespace {

// IPv4, by which the watch of ranks goes too.
std::vector<in_addr_t> addresses_here() {
  std::vector<in_addr_t> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET)
      found.push_back(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
  ::freeifaddrs(all);
  return found;
}

bool is_here(const std::string& host) {
  char own[256] = "";
  if (host == "localhost" || (::gethostname(own, sizeof own - 1) == 0 && host == own)) return true;
  addrinfo wanted{}, *all = nullptr;
  wanted.ai_family = AF_INET;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &all) != 0) return false;
  const std::vector<in_addr_t> here = addresses_here();
  bool found = false;
  for (const addrinfo* one = all; one; one = one->ai_next)
    found |= std::count(here.begin(), here.end(),
                        reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr.s_addr) > 0;
  ::freeaddrinfo(all);
  return found;
}

void add_words(std::vector<std::string>& words, const std::string& text) {
  std::istringstream all(text);
  for (std::string word; all >> word;) words.push_back(word);
}

// The first of the agents that "ssh : rsh" names. Nobody is there to be asked for a password.
std::vector<std::string> agent_words(double seconds) {
  const char *named = environment_variable("OMPI_MCA_plm_rsh_agent"),
             *more = environment_variable("OMPI_MCA_plm_rsh_args");
  const std::string text = named && *named ? named : "ssh";
  std::vector<std::string> agent;
  add_words(agent, text.substr(0, text.find(" :")));
  if (std::filesystem::path(agent.empty() ? "" : agent[0]).filename() == "ssh")
    agent.insert(agent.end(), {"-o", "BatchMode=yes", "-o",
                               "ConnectTimeout=" + std::to_string(static_cast<int>(seconds))});
  add_words(agent, more ? more : "");
  return agent;
}

}  // namespace

bool under_scheduler() {
  for (const char* job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
    if (environment_variable(job)) return true;
  return false;
}

std::vector<std::string> silent_hosts(const Hosts& hosts, double seconds) {
  std::vector<std::string> silent;
  std::vector<std::unique_ptr<ChildProcess>> asked;
  if (under_scheduler()) return silent;
  const std::vector<std::string> agent = agent_words(seconds);
  for (const Host& host : hosts.all) {
    // What a login prints is not the command's output.
    std::vector<std::string> words = {"/bin/sh", "-c", R"(exec "$@" >&2)", "sh"};
    words.insert(words.end(), agent.begin(), agent.end());
    words.insert(words.end(), {host.name, "true"});
    asked.push_back(is_here(host.name) ? nullptr : std::make_unique<ChildProcess>(words, Assignments{}));
  }
  const auto start = Clock::now();
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i]) continue;
    while (!asked[i]->status() && seconds_since(start) < seconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::optional<int>& status = asked[i]->status();
    if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0) silent.push_back(hosts.all[i].name);
  }
  return silent;
}

}  // namespace vitrail
