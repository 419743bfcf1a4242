// A run's folder: created where it is missing, accepted only when it is empty or a run's own, locked by one
// process at a time, and cleared of what a killed run has left. Knows nothing of training.
#pragma once

#include <string>
#include <vector>

#include "base/run_files.h"
#include "base/run_lock.h"

namespace vitrail {

class RunFolder {
 public:
  // Throws Error(kWrite) naming the file in the way when the folder is not a run's, when another run holds it
  // or when it cannot be written.
  explicit RunFolder(const std::string& path);

  const std::string& path() const { return made_.path; }
  // Returns a sentence about an abandoned folder that was taken over; empty otherwise.
  const std::string& note() const { return lock_.note(); }
  // Returns whether no other process on any host can be writing to it.
  bool is_ours_alone() const { return lock_.certain(); }
  // Removes what killed processes left half-written, and returns the names. What they had moved aside must
  // have been restored before.
  std::vector<std::string> tidy() const;

 private:
  // Removes a folder that was created for the run when the run wrote nothing.
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

// Returns the name of a file or folder in `folder` that no run has made; empty when there is none, or when a
// run has made the folder: then other files in it are the user's own and stay.
std::string foreign_name_in(const std::string& folder);

// Throws Error(kData) for a folder without a checkpoint that holds results of a run all the same.
void refuse_without_checkpoint(const RunFiles& files);

}  // namespace vitrail
