// The parameters of a plan as its kernels want them, kept in a file from one start to the next. Engine asks
// it before it reads and packs the weights; whatever is not exactly right is ignored and made anew.
#pragma once

#include <string>
#include <vector>

#include "io/model_files.h"
#include "runtime/persistent_store.h"

namespace vitrail {

class PackedCache {
 public:
  // `folders`: where it may lie, best first; they are made when something is written.
  PackedCache(const OpenedModel& model, const ExecutionPlan& plan, std::vector<std::string> folders);

  // Whether the store now holds the parameters.
  bool load(const PersistentStore& store, ThreadPool& pool);
  // Into the first folder that takes it; a place that cannot be written is passed over.
  void save(const PersistentStore& store, ThreadPool& pool);

  const std::string& note() const { return note_; }  // what happened, one sentence

 private:
  bool save_into(const std::string& folder, const PersistentStore& store, ThreadPool& pool);

  std::vector<std::string> folders_;
  std::string identity_, name_, note_;
};

}  // namespace vitrail
