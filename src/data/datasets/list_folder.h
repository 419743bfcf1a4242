// What lies in a folder, with as few system calls as it takes: kinds come from the listing itself wherever
// the file system gives them. Knows nothing of classes.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct FolderEntries {
  std::vector<std::string> folders, files;  // names in byte order, those that begin with a dot left out
};

// Links count as what they lead to; a link that leads nowhere counts as a file. Throws Error(kData) when the
// folder cannot be listed.
FolderEntries list_folder(const std::string& path);

// Every image below `path`, as paths relative to it in byte order. A folder whose name ends like an image
// counts as one: it cannot be read, and whoever tries is told so. Links to folders are not followed.
std::vector<std::string> list_pictures_below(const std::string& path);

}  // namespace vitrail
