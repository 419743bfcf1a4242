// Unfinished work, recognised by its name: ".tmp-WHAT-NUMBER-MARK", where the mark identifies the process it
// belongs to, so that another process can tell when it will never be finished. Knows nothing of what is in
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

constexpr const char* kUnfinishedPrefix = ".tmp-";
constexpr std::string_view kGonePrefix = ".tmp-gone-";  // followed by a number below kMostGone and a name
constexpr int kMostGone = 16;

// Returns whether the name has this form, or is that of a folder that could not be deleted (durable.h); other
// names with the same start are not ours.
bool is_unfinished(const std::string& name);

// Returns which file an AtomicFile (base/file.h) was writing under this name; empty for any other name.
std::string half_written_file(const std::string& name);

// Returns a name that is unique among processes and calls.
std::string unfinished_name(const std::string& what);

// Removes unfinished work from a folder and returns the removed names: that of processes which are surely
// dead, or, for the `sole` user of the folder, that of any other process.
std::vector<std::string> remove_unfinished(const std::string& folder, bool sole);

}  // namespace vitrail
