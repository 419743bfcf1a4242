// What the shim watches and when it interferes, by the environment that fault_shim.cpp describes.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fault {

constexpr int kMaxFd = 256;

struct Watched {
  std::string path;
  bool created = false;
};

struct State {
  std::string root, cls, action;
  long at = 0, lasting = 1, count = 0;
  int log = -1;
  const char* count_file = nullptr;
  Watched fds[kMaxFd];
};

inline const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

inline State& state() {
  static State* s = [] {
    auto* made = new State;
    made->root = setting("FAULT_ROOT");
    made->cls = setting("FAULT_CLASS");
    made->action = setting("FAULT_ACTION");
    made->at = std::atol(setting("FAULT_AT"));
    if (*setting("FAULT_FOR")) made->lasting = std::atol(setting("FAULT_FOR"));
    if (*setting("FAULT_COUNT")) made->count_file = setting("FAULT_COUNT");
    if (*setting("FAULT_LOG"))
      made->log = next<int(const char*, int, ...)>("open")(setting("FAULT_LOG"),
                                                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return made;
  }();
  return *s;
}

inline bool is_watched(const std::string& path) {
  const std::string& root = state().root;
  return !root.empty() && path.compare(0, root.size(), root) == 0;
}

inline Watched* watched_fd(int fd) {
  return fd >= 0 && fd < kMaxFd && !state().fds[fd].path.empty() ? &state().fds[fd] : nullptr;
}

inline std::string full_path(int folder, const char* path) {
  const Watched* base = path[0] == '/' || folder == AT_FDCWD ? nullptr : watched_fd(folder);
  return base ? base->path + "/" + path : path;
}

inline void raw_write(int fd, const char* data, size_t size) {
  static auto* real = next<ssize_t(int, const void*, size_t)>("write");
  while (size > 0) {
    const ssize_t put = real(fd, data, size);
    if (put <= 0) return;
    data += put;
    size -= static_cast<size_t>(put);
  }
}

inline void note(const std::string& line, const void* data = nullptr, size_t size = 0) {
  if (state().log < 0) return;
  std::string text = line + "\n";
  if (data) text.append(static_cast<const char*>(data), size);
  raw_write(state().log, text.data(), text.size());
}

// Whether this call is a chosen one. Kills here when that is the action.
inline bool chosen(const char* cls) {
  State& s = state();
  const bool any = s.cls == "any" && std::strcmp(cls, "read") != 0;
  if (!any && s.cls != cls) return false;
  ++s.count;
  if (s.count < s.at || s.count >= s.at + s.lasting) return false;
  if (s.action == "kill") ::raise(SIGKILL);
  return true;
}

// The chosen call fails with the number in the action; torn and short are for plain writes alone.
inline bool fails(const char* cls) {
  if (!chosen(cls)) return false;
  if (state().action == "torn") ::raise(SIGKILL);
  errno = std::atoi(state().action.c_str());
  return errno != 0;
}

// A call on one path that exists or shall: `line` goes to the log when it succeeds.
template <typename Call>
int on_path(const char* cls, const std::string& path, const std::string& line, Call&& call) {
  if (!is_watched(path)) return call();
  if (fails(cls)) return -1;
  const int result = call();
  const int code = errno;
  if (result == 0) note(line);
  errno = code;
  return result;
}

}  // namespace fault
