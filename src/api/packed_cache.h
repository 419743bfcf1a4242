// The parameters of a plan in the storage order of its kernels, kept in a file from one start to the next, so
// that a start need not read and pack the weights. A file that does not match exactly is ignored and
// replaced.
#pragma once

#include <string>
#include <vector>

#include "io/model_files.h"
#include "runtime/persistent_store.h"

namespace vitrail {

class PackedCache {
 public:
  // `folders` are the places where the file may lie, best first; they are created when something is written.
  PackedCache(const OpenedModel& model, const ExecutionPlan& plan, std::vector<std::string> folders);

  // Returns whether the store now holds the parameters.
  bool load(const PersistentStore& store, ThreadPool& pool);
  // Writes into the first folder that allows it; a folder that cannot be written is skipped.
  void save(const PersistentStore& store, ThreadPool& pool);

  const std::string& note() const { return note_; }  // what happened, one sentence

 private:
  bool save_into(const std::string& folder, const PersistentStore& store, ThreadPool& pool);

  std::vector<std::string> folders_;
  std::string identity_, name_, note_;
};

// Returns the folder of the model, then the user's cache: `xdg_cache` (XDG_CACHE_HOME) or `home`/.cache;
// either may be empty.
std::vector<std::string> packed_cache_places(const std::string& model_path, const std::string& xdg_cache,
                                             const std::string& home);

}  // namespace vitrail
