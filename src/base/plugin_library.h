// Plugin libraries that lie beside the program, or where it was installed: what needs a vendor's libraries is
// kept in one of them, so that the program starts without. Opened once and never closed. Knows no vendor, no
// search path of the environment and nothing of what a plugin offers.
#pragma once

#include <string>

namespace vitrail {

struct PluginLibrary {
  std::string path;        // where it was found; empty when it was not
  std::string problem;     // why it could not be opened, as the loader says it; empty when it was
  void* symbol = nullptr;  // what was asked for; null where the library has no such thing
};

// Looks for the file beside the program and beside the library that this code may be part of, as built or as
// installed, opens it and takes one symbol. A file that is nowhere gives an empty path and no problem.
PluginLibrary open_plugin(const char* file, const char* symbol);

}  // namespace vitrail
