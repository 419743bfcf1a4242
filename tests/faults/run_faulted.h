// Runs save_loop under the fault shim, and looks at what it left. Shared by the fault tests.
#pragma once

#include <string>
#include <vector>

namespace vitrail::testing {

struct Fault {
  std::string cls = "none", action;
  long at = 0;
};

constexpr int kKept = 2;  // checkpoints, by save_loop, unless it is told otherwise

struct Outcome {
  bool killed = false;
  int exit_code = 0;
  std::string said;
  long calls = 0;  // of the fault's class; known unless killed
};

// A folder that goes away with the test; in memory where possible, since faults need no real disk.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Outcome run_faulted(const std::string& run_folder, int first, int last, const Fault& fault,
                    const std::string& log = "", int keep = kKept, int ranks = 1);

// What must hold of a run folder whatever happened: every checkpoint outside of unfinished folders is whole
// and holds what its step gave, and `latest` names one of them. Returns the newest step, -1 when there is
// none.
int64_t examine(const std::string& run_folder);

std::vector<std::string> unfinished_in(const std::string& run_folder);

bool is_long();  // whether the long variants were asked for

}  // namespace vitrail::testing
