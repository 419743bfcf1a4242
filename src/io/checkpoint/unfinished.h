// Work that is not finished, told by its name: ".tmp-WHAT-NUMBER-MARK", where the mark says which process it
// belongs to, so that another can tell when nobody will finish it. Used by checkpoints and by whoever
// replaces a model folder. Knows nothing of what is in it.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

constexpr const char* kUnfinishedPrefix = ".tmp-";

// A name that no other process, and no other call in this one, will give.
std::string unfinished_name(const std::string& what);

// Removes unfinished work from a folder and returns the names of what went: that of processes which are
// surely dead, or, for the `sole` user of the folder, that of anybody else.
std::vector<std::string> remove_unfinished(const std::string& folder, bool sole);

}  // namespace vitrail
