// The folder in which Open MPI keeps one job's session on this host. The one it would take, ompi.HOST.UID,
// serves all jobs of a user: an mpirun that ends removes it while another makes its own below it. Knows no
// jobs.
#pragma once

#include <string>

#include "launch/child_process.h"

namespace vitrail {

// Returns where such folders are made by this process's environment: in TMPDIR, or in /tmp where paths below
// that would be too long for sockets. Empty: Open MPI chooses, as it was told to, or a scheduler may hand it
// other hosts.
std::string session_parent();

class SessionFolder {
 public:
  // Makes one, and removes those of this user whose processes are gone: who is killed leaves his. Where none
  // can be made, or without a parent, path() is empty.
  explicit SessionFolder(const std::string& parent);
  ~SessionFolder();  // removes it
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;

  const std::string& path() const { return path_; }
  Assignments environment() const;  // by which mpirun takes it

 private:
  std::string path_;
  int lock_ = -1;  // on the folder, while this process lives: it may be of another PID namespace
};

}  // namespace vitrail
