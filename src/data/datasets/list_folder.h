// The content of a folder, listed with as few system calls as possible: kinds come from the listing itself
// wherever the file system gives them. Knows nothing of classes.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct FolderEntries {
  std::vector<std::string> folders, files;  // names in byte order, those that begin with a dot left out
};

// Links count as what they point to; a broken link counts as a file. Throws Error(kData) when the folder
// cannot be listed.
FolderEntries list_folder(const std::string& path);

// Lists every image below `path`, as paths relative to it in byte order. A folder whose name ends like an
// image counts as one: reading it is an error. Links to folders are not followed.
std::vector<std::string> list_pictures_below(const std::string& path);

}  // namespace vitrail
