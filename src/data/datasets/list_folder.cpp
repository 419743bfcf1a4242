// Lists the files and folders of a folder, and the images below it, in a fixed order.
#include "data/datasets/find_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "data/datasets/formats.h"

namespace vitrail {

namespace {

enum class EntryKind { kFile, kFolder, kFolderLink };

EntryKind kind_of(const std::string& folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return EntryKind::kFile;
  if (entry.d_type == DT_DIR) return EntryKind::kFolder;
  // A link with an image's ending counts as an image, whatever it points to: folders full of links need no
  // further calls.
  if (entry.d_type == DT_LNK && formats::has_image_ending(entry.d_name)) return EntryKind::kFile;
  const std::string path = folder + "/" + entry.d_name;
  struct stat own {
  }, target{};
  if (::stat(path.c_str(), &target) != 0 || !S_ISDIR(target.st_mode)) return EntryKind::kFile;
  return ::lstat(path.c_str(), &own) == 0 && S_ISLNK(own.st_mode) ? EntryKind::kFolderLink
                                                                  : EntryKind::kFolder;
}

// Calls visit(name, kind) for every entry that does not begin with a dot.
template <typename Visit>
void for_each_entry(const std::string& path, Visit&& visit) {
  const std::unique_ptr<DIR, void (*)(DIR*)> folder(::opendir(path.c_str()), [](DIR* d) { ::closedir(d); });
  const auto fail = [&] {
    throw Error(ErrorKind::kData,
                strf("cannot list %s: %s", formats::printable(path).c_str(),
                     std::error_code(errno, std::generic_category()).message().c_str()),
                "check the path");
  };
  if (!folder) fail();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (!entry && errno != 0) fail();
    if (!entry) return;
    if (entry->d_name[0] != '.') visit(std::string(entry->d_name), kind_of(path, *entry));
  }
}

}  // namespace

FolderEntries list_folder(const std::string& path) {
  FolderEntries entries;
  for_each_entry(path, [&](std::string name, EntryKind kind) {
    (kind == EntryKind::kFile ? entries.files : entries.folders).push_back(std::move(name));
  });
  std::sort(entries.folders.begin(), entries.folders.end());
  std::sort(entries.files.begin(), entries.files.end());
  return entries;
}

std::vector<std::string> list_images_below(const std::string& path) {
  std::vector<std::string> images, waiting = {""};
  while (!waiting.empty()) {
    const std::string prefix = std::move(waiting.back());
    waiting.pop_back();
    for_each_entry(prefix.empty() ? path : path + "/" + prefix, [&](const std::string& name, EntryKind kind) {
      if (formats::has_image_ending(name))
        images.push_back(prefix + name);
      else if (kind == EntryKind::kFolder)
        waiting.push_back(prefix + name + "/");
    });
  }
  std::sort(images.begin(), images.end());
  return images;
}

}  // namespace vitrail
