// The names of files that are being written: ".FILE.tmp-NUMBER-HOST-PID-START", beside what they are to
// become, so that what a process left when it died is known from what another is writing. Knows no content.
#pragma once

#include <optional>
#include <string>

#include "base/process_mark.h"

namespace vitrail {

struct HalfWritten {
  std::string file;  // the name that it was to get, cut where that is long
  // Nothing for names of earlier versions, ".FILE.tmp-NUMBER-NUMBER", which say no host.
  std::optional<ProcessMark> writer;
};
// Returns what a name says; nothing for any other name.
std::optional<HalfWritten> half_written(const std::string& name);

// Returns a name for a file that is to become `file`, unique among processes and calls.
std::string half_written_name(const std::string& file);

// Marks an open file of such a name as being written, for as long as it is open.
void hold_half_written(int fd);

// Removes what processes that are surely dead had begun to write in the place of the file `path`, and nobody
// holds. Never fails.
void remove_abandoned(const std::string& path);

}  // namespace vitrail
