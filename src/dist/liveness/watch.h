// The side that ranks report to, beside MPI and NCCL: `vitrail launch`, or the process of rank 0. Keeps the
// table of ranks, tells every rank when the job is to end and why, and leaves what is known of each in the
// run's folder. It has no thread of its own: whoever owns it calls turn() again and again.
#pragma once

#include <map>

#include "dist/liveness/line_socket.h"
#include "dist/liveness/rank_table.h"

namespace vitrail::liveness {

struct WatchSettings {
  int ranks = 1;
  Limits limits = {};
  std::string host = "127.0.0.1";                     // under which ranks reach it
  int port = 0;                                       // 0: any
  std::function<void(const std::string&)> told = {};  // a rank was silent for a while and goes on
};

class Watch {
 public:
  explicit Watch(WatchSettings settings);  // throws Error(kComm) when the port is taken

  // "127.0.0.1:40123/6f1c..": host, port, and a word that only this job's ranks know.
  const std::string& address() const { return address_; }
  // Waits for reports for so long at most, and judges.
  void turn(int milliseconds);
  const RankTable& table() const { return table_; }
  const std::optional<Verdict>& verdict() const { return table_.verdict(); }
  // Asks every rank, those that are yet to come as well, to save and stop.
  void ask_to_stop();
  // Ends the job for a reason that no rank has told.
  void end(Verdict verdict);

 private:
  struct Peer {
    LineSocket socket;
    int first = -1, count = 0;  // the ranks of the process; -1: it has not said who it is
  };
  void accept();
  void read(Peer& peer);
  void take(Peer& peer, const Json& message);
  void greet(Peer& peer, const Json& message);
  void broadcast(const std::string& line);
  void announce();
  std::string end_line() const;
  void write_crash_files() const;

  WatchSettings settings_;
  Descriptor listener_;
  std::string word_, address_, folder_;
  RankTable table_;
  std::map<int, Peer> peers_;  // by descriptor
  double last_turn_, last_ping_ = 0;
  bool announced_ = false, stop_asked_ = false;
};

}  // namespace vitrail::liveness
