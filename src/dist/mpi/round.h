// Messages between this rank and others that travel at the same time. Every range is carried as bytes, cut
// where MPI's counts end. Knows nothing of what the messages are for.
#pragma once

#include <mpi.h>

#include <vector>

#include "dist/mpi/library.h"

namespace vitrail::mpi {

class Round {
 public:
  using Counts = std::vector<size_t>;  // elements, by rank

  Round(Library& library, MPI_Comm comm, int rank, int size, size_t element_bytes)
      : library_(library), comm_(comm), rank_(rank), size_(size), element_(element_bytes) {}
  ~Round();  // gives up what has not arrived, which is for a group that has failed
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  void use_tag(int tag) { tag_ = tag; }
  // Nothing is sent where there are no elements. What goes between two ranks with one tag keeps its order.
  void send(const void* from, size_t count, int to);
  void receive(void* to, size_t count, int from);
  // Piece r of what lies one after another goes to rank r, or comes from it; this rank's own is left out.
  void send_pieces(const void* from, const Counts& counts);
  void receive_pieces(void* to, const Counts& counts);
  void send_everyone(const void* from, size_t count, int but = -1);
  void barrier();  // of the whole group; started by all in one order

  // Returns true when everything has arrived and left, and is ready for the next round then. Throws
  // Error(kInternal) when a message had another size than was expected.
  bool test();

 private:
  void check_sizes() const;

  Library& library_;
  MPI_Comm comm_;
  int rank_, size_, tag_ = 0;
  size_t element_;  // bytes
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> expected_;  // bytes; -1 of what is not received
};

}  // namespace vitrail::mpi
