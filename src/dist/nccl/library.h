// NCCL as a library that is looked for at run time: the few types and functions of it that are used, declared
// here, so that nothing is needed to build. Their values are part of NCCL's binary interface since 2.14.
#pragma once

#include <cstddef>
#include <string>

namespace vitrail::nccl {

using Comm = struct CommTag*;
struct UniqueId {
  char bytes[128];
};
enum class Status : int { kSuccess = 0, kInProgress = 7 };  // others are errors
enum class Type : int { kInt8 = 0, kInt32 = 2, kInt64 = 4, kF16 = 6, kF32 = 7, kF64 = 8, kBF16 = 9 };
constexpr int kSum = 0;

struct Library {
  std::string path;     // where it was opened
  std::string problem;  // why it cannot be used, with the line that brings it; empty when it can
  int version = 0;      // 23203 of 2.32.3

  Status (*get_version)(int*);
  const char* (*error_text)(Status);
  const char* (*last_error)(Comm);
  Status (*unique_id)(UniqueId*);
  Status (*init_rank)(Comm*, int size, UniqueId, int rank);
  Status (*destroy)(Comm);
  Status (*abort)(Comm);
  Status (*async_error)(Comm, Status*);
  Status (*group_start)();
  Status (*group_end)();
  Status (*all_reduce)(const void* in, void* out, size_t count, Type, int op, Comm, void* stream);
  Status (*reduce_scatter)(const void* in, void* out, size_t count, Type, int op, Comm, void* stream);
  Status (*all_gather)(const void* in, void* out, size_t count, Type, Comm, void* stream);
  Status (*reduce)(const void* in, void* out, size_t count, Type, int op, int root, Comm, void* stream);
  Status (*broadcast)(const void* in, void* out, size_t count, Type, int root, Comm, void* stream);
  Status (*send)(const void* in, size_t count, Type, int peer, Comm, void* stream);
  Status (*receive)(void* out, size_t count, Type, int peer, Comm, void* stream);
};

inline constexpr int kLeastVersion = 21800;  // older ones lack what abort and capture need
inline constexpr int kSharesGpus = 23000;  // from here on several ranks may share a GPU, if they are told to
inline constexpr const char* kInstall = "pip install nvidia-nccl-cu13, or the system's libnccl2";

std::string version_text(int version);  // "2.32.3"

// Opens the library of that path, or the system's libnccl.so.2 where it is empty. Each is opened once and
// never closed.
const Library& open_library(const std::string& path);

}  // namespace vitrail::nccl
