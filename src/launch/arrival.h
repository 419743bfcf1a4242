// The wait of a rank for the others of a job that mpirun or srun has started. MPI_Init returns when all have
// come, and nothing of ours runs inside it: a thread counts the seconds, and ends the process when they are
// too many. Ranks of a host see each other by names that they hold. Knows no MPI.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/stop.h"
#include "dist/mpi_world.h"

namespace vitrail {

// A rank among those of its job, as its launcher numbers them.
struct JobPlace {
  std::string job;  // its name on this host; empty: none is known
  int rank = 0, size = 1;
  int here = 0;  // ranks on this host; 0: not known
};

// Nothing where the variables speak of no job of several ranks.
std::optional<JobPlace> job_place(const Variables& variables);

// Says who has not come, by the ranks of this host that have; empty `came`: nobody can be seen.
std::string absent_text(const JobPlace& place, const std::vector<int>& came, double seconds,
                        const std::string& host);

// A name that one process of this host has at a time: a socket that nobody calls. It goes with the process.
class HeldName {
 public:
  explicit HeldName(const std::string& name);  // empty: none
  ~HeldName();
  HeldName(const HeldName&) = delete;
  HeldName& operator=(const HeldName&) = delete;

  bool held() const { return socket_ >= 0; }
  bool taken() const { return taken_; }  // by another

 private:
  int socket_ = -1;
  bool taken_ = false;
};

class Arrival {
 public:
  // From now on the others have so many seconds to come. Then one rank of each host says who is absent, and
  // each ends with exit code 69; what started them ends the rest. A rank that is asked to stop says nothing.
  Arrival(JobPlace place, double seconds, const SignalGuard& signals);
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  void complete();  // all have come

 private:
  void wait();
  void tell() const;
  std::string name_of(const std::string& what) const;

  JobPlace place_;
  double seconds_;
  const SignalGuard& signals_;
  HeldName own_;  // others see it until this rank ends
  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
  std::thread clock_;
};

}  // namespace vitrail
