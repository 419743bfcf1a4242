// A library under a plugin's name that a stranger might leave in a folder: being loaded makes it write
// a file, so that a test sees it.
#include <cstdio>
#include <cstdlib>

namespace {
struct Mark {
  Mark() {
    const char* path = std::getenv("TRAP_MARK");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (file) std::fclose(file);
  }
} mark;
}  // namespace
