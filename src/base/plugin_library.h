// Plugin libraries that lie beside the program, or where it was installed: what needs a vendor's libraries is
// kept in one of them, so that the program starts without. Opened once and never closed. Knows no vendor, no
// search path of the environment and nothing of what a plugin offers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace vitrail {

// Returns the file that code is part of, a library or the program; empty where the system does not tell.
std::filesystem::path file_of_code(const void* address);

// Returns a checksum of the program's file, as "program", and of every plugin that it would find, by name:
// where they are the same, so is the build. Throws Error(kData) for a file that cannot be read.
std::map<std::string, std::string> build_checksums(const std::filesystem::path& program);

struct PluginNames {
  const char* file;    // "libvitrail_cuda.so"
  const char* symbol;  // the one that it exports: a function that returns its table
  const char* brings;  // "CUDA"
  const char* absent;  // what to say beside "this build has no CUDA"; may be empty
  const char* broken;  // what may bring the libraries that it could not be opened for
};

// A plugin's table of functions begins with a hash of the headers that both sides agree on.
template <typename Api>
struct Plugin {
  std::string path;     // where it was opened; empty when it was not
  std::string problem;  // why it cannot be used; empty when it can
  const Api* api = nullptr;
};

// Looks for the file beside the program and beside the library that this code may be part of, as built or as
// installed, opens it and calls its symbol. Returns nothing, and says why, where there is none.
Plugin<void> open_plugin(const PluginNames& names);

// Opens the libraries in a folder, each as soon as those that it needs are open: what is opened after them
// finds them by their names, wherever the system would search. What cannot be opened is left out.
void open_libraries(const std::filesystem::path& folder);

// The same as open_plugin() above, and refuses a plugin of another version.
template <typename Api>
Plugin<Api> open_plugin(const PluginNames& names, uint64_t version) {
  const Plugin<void> opened = open_plugin(names);
  Plugin<Api> plugin{opened.path, opened.problem, static_cast<const Api*>(opened.api)};
  if (!plugin.problem.empty() || (plugin.api && plugin.api->version == version)) return plugin;
  plugin.problem = plugin.path + " belongs to another build of Vitrail";
  plugin.api = nullptr;
  return plugin;
}

}  // namespace vitrail
