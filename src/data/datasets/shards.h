// The shards a name stands for: "train-{000..146}.tar", "{a,b}/*.tar".
#pragma once

#include <string>
#include <vector>

namespace vitrail {

// {a,b} and {000..146} written out; braces do not nest. Throws Error(kConfig) on what cannot be read.
std::vector<std::string> expand_braces(const std::string& pattern);

// The files, in order; * ? [ ] are matched against what is there. Throws Error(kData) when a pattern matches
// nothing.
std::vector<std::string> find_shards(const std::string& pattern);

}  // namespace vitrail
