// MPI in this process: its start and end, its errors as ours, the abort that ends every wait of this rank,
// and what this rank has on its way in all groups. Knows no collective.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/group_failure.h"

namespace vitrail::mpi {

// Something that moves on when it is asked to. MPI makes no progress by itself.
class Moving {
 public:
  virtual ~Moving() = default;
  virtual bool step() = 0;  // returns true when it is complete
};

// Memory for the parts of others, kept for the next collective: fresh pages cost as much as the message.
struct Scratch {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
};

class Library {
 public:
  Library();  // throws Error(kComm) when MPI does not start, Error(kInternal) when it has been started before
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // After this nothing waits, nothing is finalised and MPI is not called again. The first text stays. May be
  // called from any thread.
  void fail(const std::string& why) { failure_.set(why); }
  bool failed() const { return failure_.is_set(); }
  std::string failure() const { return failure_.text(); }    // empty: it has not failed
  void throw_if_failed() const { failure_.throw_if_set(); }  // Error(kComm)
  // Throws Error(kComm) for what an MPI function returned.
  void check(int code, const char* function);

  void enter(Moving* one) { on_its_way_.push_back(one); }
  void leave(Moving* one) { std::erase(on_its_way_, one); }
  // Moves on everything: a rank that waits for one may hold others up with the rest.
  void move_on();

  Scratch take(size_t size);
  void give_back(Scratch scratch);

 private:
  std::vector<Moving*> on_its_way_;
  std::vector<Scratch> spare_;
  int exceptions_;  // on their way when MPI was started
  GroupFailure failure_;
};

}  // namespace vitrail::mpi
