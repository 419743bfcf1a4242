// Says where each rank of a run sits: host, device and cores; makes the table of all. Knows no trainer.
#pragma once

#include <string>
#include <vector>

#include "plan/devices.h"
#include "tensor/mesh.h"

namespace vitrail {

struct RankSeat {
  int rank = 0;
  std::string host, device;
  int threads = 1;
  std::string mesh;            // its coordinates, "dp=0 tp=1"
  std::vector<int> cores;      // on which it may run, ascending; none: not known
  bool computes_there = true;  // on these cores, not on a GPU

  std::string text() const;  // as from_all() carries it
  static RankSeat from(const std::string& text);
};
// Returns the seat of a rank of this process on that device.
RankSeat seat_here(const Mesh& mesh, const DeviceInfo& device);

// Gives ranks that may run on the same cores of a host, and have no more threads than these, cores of their
// own, in proportion to their threads. Ranks keep what their launcher gave to each alone.
void share_cores(std::vector<RankSeat>& seats);

std::string coordinates_of(const Mesh& mesh);
// "rank  host  device  threads  cores  mesh" and a row each, without a line end after the last.
std::string seat_table(const std::vector<RankSeat>& seats);

}  // namespace vitrail
