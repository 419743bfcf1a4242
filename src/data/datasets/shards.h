// Finds the shards that a pattern stands for: "train-{000..146}.tar", "{a,b}/*.tar".
#pragma once

#include <string>
#include <vector>

namespace vitrail {

// Expands {a,b} and {000..146}; braces do not nest. Throws Error(kConfig) for an invalid pattern.
std::vector<std::string> expand_braces(const std::string& pattern);

// Returns the files, in order; * ? [ ] match existing files. Throws Error(kData) when a pattern matches
// nothing.
std::vector<std::string> find_shards(const std::string& pattern);

}  // namespace vitrail
