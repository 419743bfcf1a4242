// The files a dataset's name stands for: what lies in a folder, the shards of a pattern. Knows no classes.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

// Holds what lies in a folder, found with as few system calls as it takes: kinds come from the listing itself
// wherever the file system gives them. Knows nothing of classes.
struct FolderEntries {
  std::vector<std::string> folders, files;  // names in byte order, those that begin with a dot left out
};

// Links count as what they point to; a broken link counts as a file. Throws Error(kData) when the folder
// cannot be listed.
FolderEntries list_folder(const std::string& path);

// Lists every image below `path`, as paths relative to it in byte order. A folder whose name ends like an
// image counts as one: reading it is an error. Links to folders are not followed.
std::vector<std::string> list_images_below(const std::string& path);

// The shards a name stands for: "train-{000..146}.tar", "{a,b}/*.tar".

// {a,b} and {000..146} written out; braces do not nest. Throws Error(kConfig) on what cannot be read.
std::vector<std::string> expand_braces(const std::string& pattern);

// The files, in order; * ? [ ] are matched against what is there. Throws Error(kData) when a pattern matches
// nothing.
std::vector<std::string> find_shards(const std::string& pattern);

}  // namespace vitrail
