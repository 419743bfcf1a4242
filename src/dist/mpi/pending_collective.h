// A collective of one rank over MPI from its start to its completion: one or two rounds of messages, with a
// sum between them that is made here, in the order of the ranks. MPI's own reductions sum in an order that
// depends on size and algorithm and would round 16-bit types at every rank; these give the bits of any other
// transport.
#pragma once

#include <memory>

#include "dist/communicator.h"
#include "dist/mpi/round.h"

namespace vitrail::mpi {

// A group of ranks: what its communicator and the collectives on their way share.
struct Group {
  Group(std::shared_ptr<Library> shared, MPI_Comm group);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::shared_ptr<Library> library;
  MPI_Comm comm;
  int rank = 0, size = 0;
  int64_t started = 0;  // collectives of the whole group
};

class PendingCollective : public Pending, private Moving {
 public:
  PendingCollective(std::shared_ptr<Group> group, const Collective& collective);
  ~PendingCollective() override;
  PendingCollective(const PendingCollective&) = delete;
  PendingCollective& operator=(const PendingCollective&) = delete;

  bool poll() override;
  void wait() override;

 private:
  bool step() override;
  void first_round();
  // Does what follows the first round, and starts the second; returns false where there is none.
  bool second_round();

  using Counts = Round::Counts;
  void gather_for_sum(const Counts& pieces);  // this rank's piece of everyone, into scratch_
  void sum_pieces(void* out, const void* own, size_t count);
  void broadcast_first();

  const char* in(size_t element = 0) const;
  char* out(size_t element = 0) const;
  bool is_small() const;  // everything goes to everyone in one round
  Counts pieces() const;  // of what is not cut by its counts

  std::shared_ptr<Group> group_;
  Collective collective_;
  Round round_;
  Scratch scratch_;
  int tag_ = 0, rounds_ = 0;
  bool finished_ = false;
};

}  // namespace vitrail::mpi
