// The hosts that ranks are to be started on, as `vitrail launch --hosts` names them: a list, or a hostfile of
// mpirun's; and which of them do not answer. Starts no ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrail {

struct Host {
  std::string name;
  int64_t slots = 1;  // ranks that it is meant for
};

struct Hosts {
  std::string text;  // what mpirun is given: "vt1:2,vt2:2", or the path of a hostfile; empty: this host alone
  bool is_file = false;
  std::vector<Host> all = {};  // each once

  bool empty() const { return text.empty(); }
  int64_t slots() const;  // of all of them
};

// Parses "vt1:2,vt2:2" (a host without a number has one slot), or reads the hostfile of that name, lines of
// "vt1 slots=2". Throws Error(kUsage) that names the line: of a host without slots mpirun would take the
// number of its cores, which nobody knows here.
Hosts hosts_from(const std::string& value);

// Throws Error(kUsage) when there are more ranks than slots.
void require_slots(const Hosts& hosts, int64_t ranks);

// Returns whether a scheduler has given this process hosts, which mpirun asks it for.
bool under_scheduler();

// Returns the hosts on which nothing can be started within `seconds`: mpirun itself would name none of them.
// Asks each but this one to run `true`, by what mpirun uses (ssh, or the agent that Open MPI's variable
// names). None under a resource manager, which starts mpirun's processes itself.
std::vector<std::string> silent_hosts(const Hosts& hosts, double seconds);

}  // namespace vitrail
