// Work that is not finished, told by its name: ".tmp-WHAT-NUMBER-MARK", where the mark says which process it
// belongs to, so that another can tell when nobody will finish it. Knows nothing of what is in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

constexpr const char* kUnfinishedPrefix = ".tmp-";
constexpr std::string_view kGonePrefix = ".tmp-gone-";  // before a number below kMostGone and a name
constexpr int kMostGone = 16;

// Whether the name has this form, or is that of what could not be deleted (durable.h): whatever else begins
// alike is somebody else's.
bool is_unfinished(const std::string& name);

// Digits and nothing else, as numbers in such names are.
bool is_number(std::string_view text);

// A name that no other process, and no other call in this one, will give.
std::string unfinished_name(const std::string& what);

// Removes unfinished work from a folder and returns the names of what went: that of processes which are
// surely dead, or, for the `sole` user of the folder, that of anybody else.
std::vector<std::string> remove_unfinished(const std::string& folder, bool sole);

}  // namespace vitrail
