#include "base/plugin_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"

namespace vitrail {

// The name by which the dynamic linker knows a file may be relative to a folder that is no longer the current
// one, and the name by which the program was started may be any: the kernel knows what it has mapped.
std::filesystem::path file_of_code(const void* address) {
  const auto sought = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream row(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string access, offset, device, inode, file;
    row >> std::hex >> begin >> dash >> end >> access >> offset >> device >> inode;
    if (sought < begin || sought >= end) continue;
    std::getline(row >> std::ws, file);
    constexpr std::string_view kReplaced = " (deleted)";  // by another version, as an update does
    return file.ends_with(kReplaced) ? file.substr(0, file.size() - kReplaced.size()) : file;
  }
  return {};
}

namespace {

// Returns the folders of the program, and of the library that this code may be part of.
std::vector<std::filesystem::path> own_folders() {
  std::error_code failed;
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& file : {std::filesystem::canonical("/proc/self/exe", failed),
                                            file_of_code(reinterpret_cast<const void*>(&own_folders))})
    if (!file.empty()) folders.push_back(file.parent_path());
  return folders;
}

// Returns where a plugin may lie relative to `folder`, that of the program or library, as built or as
// installed.
std::vector<std::filesystem::path> places_for(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> places = {folder, folder / "vitrail"};
  if (folder.filename() == "bin")
    for (const char* library : {"lib", "lib/vitrail"}) places.push_back(folder.parent_path() / library);
  return places;
}

std::string computed_checksum(const std::string& path) {
  const RandomAccessFile file(path);
  std::vector<std::byte> block(size_t{1} << 20);
  uint32_t sum = 0;
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    const auto part = std::span(block).first(std::min<uint64_t>(block.size(), file.size() - at));
    file.read_at(at, part);
    sum = crc32c(part, sum);
  }
  return strf("%08x", sum);
}

// A file is read again when it is not the one that it was.
std::string checksum_of(const std::string& path) {
  static std::mutex guard;
  static std::map<std::string, std::string> known;
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return computed_checksum(path);  // which says why it cannot be read
  const std::string key =
      strf("%s %ju %ju %jd %ld", path.c_str(), uintmax_t{now.st_ino}, static_cast<uintmax_t>(now.st_size),
           intmax_t{now.st_mtim.tv_sec}, static_cast<long>(now.st_mtim.tv_nsec));
  const std::lock_guard lock(guard);
  std::string& sum = known[key];
  if (sum.empty()) sum = computed_checksum(path);
  return sum;
}

std::string find_plugin(const char* file) {
  std::error_code failed;
  for (const std::filesystem::path& folder : own_folders())
    for (const std::filesystem::path& place : places_for(folder))
      if (std::filesystem::exists(place / file, failed)) return (place / file).string();
  return {};
}

}  // namespace

std::map<std::string, std::string> build_checksums(const std::filesystem::path& program) {
  std::map<std::string, std::string> sums = {{"program", checksum_of(program.string())}};
  std::error_code failed;
  for (const std::filesystem::path& place : places_for(program.parent_path()))
    for (const auto& entry : std::filesystem::directory_iterator(place, failed)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libvitrail_") && name.ends_with(".so") && !sums.contains(name))
        sums[name] = checksum_of(entry.path().string());
    }
  return sums;
}

Plugin<void> open_plugin(const PluginNames& names) {
  Plugin<void> plugin;
  const std::string path = find_plugin(names.file);
  if (path.empty()) {
    plugin.problem =
        strf("%s is not beside the program: this build has no %s%s", names.file, names.brings, names.absent);
    return plugin;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    plugin.problem = strf("%s cannot be opened: %s; %s", path.c_str(), dlerror(), names.broken);
    return plugin;
  }
  plugin.path = path;
  const auto get = reinterpret_cast<const void* (*)()>(dlsym(library, names.symbol));
  if (get) plugin.api = get();
  return plugin;
}

void open_libraries(const std::filesystem::path& folder) {
  std::vector<std::string> left;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.is_regular_file()) left.push_back(entry.path().string());
  const auto opens = [](const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  while (std::erase_if(left, opens) > 0) continue;
}

}  // namespace vitrail
