// Collectives among the ranks of a group, whatever carries them: threads of one process, MPI, NCCL. All ranks
// of a group start the same collectives in the same order. Knows no program and decides nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace vitrail {

class ThreadPool;

// One collective as a rank sees it. Counts are in elements and the same on every rank, except of send and
// receive; a count may be 0. `in` and `out` overlap only where it is said.
struct Collective {
  enum class Kind {
    kAllReduce,      // out = the sum over ranks of in; counts = {n}; out may be in
    kReduceScatter,  // out = the sum of everyone's piece r on rank r; counts[r] of each piece, all of them in
                     // `in`, one after another; out may be the own piece of in
    kAllGather,      // out = the pieces of all ranks, one after another; counts[r] of each; in may be the own
                     // piece of out
    kAllToAll,       // piece r of in goes to rank r; out = what came from rank 0, 1, ...; counts = what goes
                     // to each, then what comes from each (2 x size)
    kBroadcast,      // out of rank `peer` to everyone's out; counts = {n}; in is not read
    kSend,           // in to rank `peer`; counts = {n}
    kReceive,        // from rank `peer` into out; counts = {n}
    kBarrier         // every rank has come this far
  };
  Kind kind = Kind::kBarrier;
  DType dtype = DType::kF32;  // sums: f64, f32, f16 and bf16 (16-bit types are summed in f32), i64, i32
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<size_t> counts = {};
  int peer = 0;
  // What one rank sends to another keeps its order within a channel, 0 or 1.
  int channel = 0;
  ThreadPool* pool = nullptr;  // where the host's cores do the work, those of the rank may help
};
const char* to_string(Collective::Kind kind);  // "all-reduce"

// A collective on its way. It must be complete before its memory is used or freed; destroying one that is not
// complete is allowed after an error alone.
class Pending {
 public:
  virtual ~Pending() = default;
  // Moves the collective on as far as it goes without waiting; true when it is complete. Throws Error(kComm)
  // when a rank has failed.
  virtual bool poll() = 0;
  // Returns when it is complete.
  virtual void wait() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* transport() const = 0;  // "threads", "mpi"

  // Starts a collective; several may be on their way at once and may be waited for in any order. The sum over
  // ranks is made in a fixed order: the same inputs give the same bits on every rank, every time.
  virtual std::unique_ptr<Pending> start(const Collective& collective) = 0;
  // Moves on everything that is on its way.
  virtual void poll() {}
  // Ranks with the same color become a group of their own, in the order of `key`. A collective itself.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  // Makes every present and later wait of any rank of the group fail with Error(kComm) and this text. May be
  // called from any thread.
  virtual void abort(const std::string& why) = 0;
  // The text given to abort(), by whichever rank of it this process has; empty: nobody has. From any thread.
  virtual std::string failure() const { return {}; }

  void run(const Collective& collective) { start(collective)->wait(); }
  void barrier() { run({}); }
};

// The group of one rank.
std::unique_ptr<Communicator> self_communicator();
// Groups of ranks that are threads of this process: one communicator a rank, to be used by its thread.
std::vector<std::unique_ptr<Communicator>> thread_communicators(int size);

}  // namespace vitrail
