#include "dist/nccl/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"

namespace vitrail::nccl {

namespace {

constexpr const char* kSystem = "libnccl.so.2";

// The file that a function came from; the name that was asked for where nobody knows.
std::string file_of(const void* function, const std::string& asked) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname ? info.dli_fname : asked;
}

// Looks functions up and remembers the first that is missing.
class Lookup {
 public:
  explicit Lookup(void* handle) : handle_(handle) {}
  template <typename F>
  void operator()(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle_, name));
    if (!function && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* handle_;
  std::string missing_;
};

std::string find_functions(void* handle, Library& library) {
  Lookup find(handle);
  find("ncclGetVersion", library.get_version);
  find("ncclGetErrorString", library.error_text);
  find("ncclGetLastError", library.last_error);
  find("ncclGetUniqueId", library.unique_id);
  find("ncclCommInitRank", library.init_rank);
  find("ncclCommDestroy", library.destroy);
  find("ncclCommAbort", library.abort);
  find("ncclCommGetAsyncError", library.async_error);
  find("ncclGroupStart", library.group_start);
  find("ncclGroupEnd", library.group_end);
  find("ncclAllReduce", library.all_reduce);
  find("ncclReduceScatter", library.reduce_scatter);
  find("ncclAllGather", library.all_gather);
  find("ncclReduce", library.reduce);
  find("ncclBroadcast", library.broadcast);
  find("ncclSend", library.send);
  find("ncclRecv", library.receive);
  return find.missing();
}

// RTLD_LOCAL: another NCCL in the process, of a framework that loaded us, keeps its own symbols.
std::unique_ptr<Library> opened(const std::string& path) {
  auto library = std::make_unique<Library>();
  const std::string asked = path.empty() ? kSystem : path;
  void* const handle = dlopen(asked.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    std::error_code failed;
    const bool there = !path.empty() && std::filesystem::exists(path, failed);
    library->problem = there ? strf("%s cannot be opened: %s", path.c_str(), why ? why : "unknown")
                             : strf("%s is not there; %s", asked.c_str(), kInstall);
    if (path.empty()) library->problem += " (VITRAIL_NCCL names the file where it lies elsewhere)";
    return library;
  }
  const std::string missing = find_functions(handle, *library);
  if (!missing.empty()) {
    library->problem = strf("%s has no %s: it is no NCCL; %s", asked.c_str(), missing.c_str(), kInstall);
    return library;
  }
  library->path = file_of(reinterpret_cast<const void*>(library->get_version), asked);
  if (library->get_version(&library->version) != Status::kSuccess || library->version < kLeastVersion)
    library->problem =
        strf("%s is NCCL %s; at least %s is needed: %s", library->path.c_str(),
             version_text(library->version).c_str(), version_text(kLeastVersion).c_str(), kInstall);
  return library;
}

}  // namespace

std::string version_text(int version) {
  return strf("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

const Library& open_library(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Library>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Library>& library = known[path];
  if (!library) library = opened(path);
  return *library;
}

}  // namespace vitrail::nccl
