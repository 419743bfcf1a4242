// Declares what the three runners of collectives share, and how each is made. It is private to the runtime.
#pragma once

#include "base/timing.h"
#include "runtime/collectives.h"

namespace vitrail {

// The memory that each rank reads and writes. In place, the parts of all ranks lie in one value.
Collective collective_of(const PlacedCollective& placed, int rank);
// The bytes that a rank reads and writes.
struct MovedBytes {
  size_t in = 0, out = 0;
};
MovedBytes bytes_of(const Collective& collective, int rank);
// The bytes that a rank sends.
double sent_bytes(const PlacedCollective& placed, int ranks);

// Measures how long a device's work stood still for a collective, by times on its stream. Runs that were not
// over when the next began count like those that were.
class Stall {
 public:
  explicit Stall(Device& device)
      : device_(device), from_(device.create_timestamp()), to_(device.create_timestamp()) {}
  void begin(Stream& stream) { stream.stamp(*from_); }
  void end(Stream& stream) { stream.stamp(*to_); }
  std::optional<double> seconds() const { return device_.seconds_apart(*from_, *to_); }

 private:
  Device& device_;
  std::unique_ptr<Timestamp> from_, to_;
};

std::unique_ptr<CollectiveRunner> host_collectives(RankContext& rank);
std::unique_ptr<CollectiveRunner> staged_collectives(RankContext& rank);
std::unique_ptr<CollectiveRunner> device_collectives(RankContext& rank);

}  // namespace vitrail
