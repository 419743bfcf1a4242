#include "measure/libraries.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace vitrail {

namespace {
using VersionReader = std::string (*)(void* symbol);

std::string version_text(void* symbol) {
  return reinterpret_cast<const char* (*)()>(symbol)();
}

// Formats 0x010204 as 1.2.4.
std::string version_hex(void* symbol) {
  const int packed = reinterpret_cast<int (*)()>(symbol)();
  return strf("%d.%d.%d", packed >> 16 & 0xFF, packed >> 8 & 0xFF, packed & 0xFF);
}

std::string version_png(void* symbol) {
  return reinterpret_cast<const char* (*)(const void*)>(symbol)(nullptr);
}

std::string version_onednn(void* symbol) {
  struct Version {
    int major, minor, patch;
  };
  const auto* version = reinterpret_cast<const Version* (*)()>(symbol)();
  return strf("%d.%d.%d", version->major, version->minor, version->patch);
}

struct Row {
  const char *name, *purpose, *package;
  bool needed;
  const char* symbol;            // a symbol that the library defines
  VersionReader read;            // null: the version is taken from the file's name
  const char* opened = nullptr;  // the file that is opened on demand; null: the library is linked
};
constexpr Row kRows[] = {
    {"libjpeg-turbo", "JPEG images", "libjpeg62-turbo", true, "jpeg_read_header", nullptr},
    {"libpng", "PNG images", "libpng16-16", true, "png_get_libpng_ver", version_png},
    {"libwebp", "WebP images", "libwebp7", true, "WebPGetDecoderVersion", version_hex},
    {"zlib", "npz files", "zlib1g", true, "zlibVersion", version_text},
    {"oneDNN", "GEMMs where the tuned table prefers it; opened on demand", "libdnnl2", false, "dnnl_version",
     version_onednn, "libdnnl.so.2"},
};

void* find_symbol(const Row& row) {
  if (!row.opened) return ::dlsym(RTLD_DEFAULT, row.symbol);
  void* library = ::dlopen(row.opened, RTLD_NOW | RTLD_LOCAL);
  return library ? ::dlsym(library, row.symbol) : nullptr;
}
}  // namespace

std::string version_in_soname(const std::string& path) {
  const size_t at = path.rfind(".so.");
  return at == std::string::npos ? "" : path.substr(at + 4);
}

std::vector<LibraryInfo> find_libraries() {
  std::vector<LibraryInfo> libraries;
  for (const Row& row : kRows) {
    LibraryInfo library{row.name, row.purpose, row.package, row.needed, false, "", ""};
    Dl_info where{};
    void* symbol = find_symbol(row);
    if (symbol && ::dladdr(symbol, &where)) {
      std::error_code ignored;
      library.found = true;
      library.path = std::filesystem::canonical(where.dli_fname, ignored).string();
      library.version = row.read ? row.read(symbol) : "ABI " + version_in_soname(library.path);
    }
    libraries.push_back(library);
  }
  return libraries;
}

}  // namespace vitrail
