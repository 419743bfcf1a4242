// A run's folder: made where it is missing, taken only when it is empty or a run's own, held by one process
// at a time, and cleared of what a run that died has left. Used by the trainer before anything else.
#pragma once

#include <string>
#include <vector>

#include "base/run_lock.h"

namespace vitrail {

class RunFolder {
 public:
  // Error(kWrite) naming the file in the way when the folder is somebody else's, when another run holds it or
  // when it cannot be written.
  explicit RunFolder(const std::string& path);

  const std::string& path() const { return made_.path; }
  // Says whose abandoned folder was taken over; empty otherwise.
  const std::string& note() const { return lock_.note(); }
  // Whether nobody else can be at work in it, on any host.
  bool is_ours_alone() const { return lock_.certain(); }
  // Removes what dead processes left half-written, and returns the names of it. What they had moved aside
  // must be back in its place by then.
  std::vector<std::string> tidy() const;

 private:
  // Goes away again when nothing came of the run.
  struct Made {
    explicit Made(const std::string& folder);
    ~Made();
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    std::string path;
    bool is_new;
  };

  Made made_;
  RunLock lock_;
};

// A file or folder in `folder` that no run has made; empty when there is none, or when a run has made the
// folder: then what lies beside its files is the user's own and stays.
std::string foreign_name_in(const std::string& folder);

}  // namespace vitrail
