// Checkpoints that are complete or absent: a folder `checkpoints` of `step-N` folders, each with the model as
// published models look, the state to resume from, and a manifest of checksums. Must not know what the state
// means.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/tensor_source.h"

namespace vitrail {

// One may turn out damaged.
constexpr int64_t kLeastGood = 2;

struct CheckpointPolicy {
  int64_t keep_last = 3;
  int64_t keep_every = 0;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("keep_last", c.keep_last, "how many of the newest good checkpoints to keep, at least 2");
    v("keep_every", c.keep_every,
      "also keep every checkpoint whose step is a multiple of this (but not step 0); 0: none");
  }
};
void validate(const CheckpointPolicy& policy);

struct CheckpointContent {
  int64_t step = 0;
  Json facts = Json::object();       // what the run says of itself: kept in the manifest
  std::vector<TensorToWrite> state;  // all that an exact resume needs, by logical name
  // Writes the model's files into the empty folder it is given, plain files only; may be absent.
  std::function<void(const std::string& folder)> write_model;
  uint64_t model_bytes = 0;  // about what write_model will write, for the check of free space
};

struct OpenedCheckpoint {
  int64_t step = 0;
  std::string folder;  // a model folder as well, when a model was written
  Json facts;
  std::unique_ptr<TensorSource> state;
};

class CheckpointStore {
 public:
  // Touches nothing: reading needs no more. A missing folder is an empty store.
  explicit CheckpointStore(std::string run_folder, CheckpointPolicy policy = {});

  // Once, by the holder of the run's lock, before the first save: makes the folder, shows that it can be
  // written, puts back what a death had left moved aside, and removes what dead processes of this host left
  // unfinished; `sole`: nobody else can be at work here, so that all that is unfinished goes. Returns what it
  // removed.
  std::vector<std::string> prepare(bool sole = false);

  // Durable on return. Error(kWrite) otherwise: nothing unfinished remains and the newest checkpoints are as
  // they were. Older ones are removed by the policy; where there is no room for one more, and for no other
  // reason, the oldest go first, one by one, but `least_good` good ones stay.
  void save(const CheckpointContent& content, int64_t least_good = kLeastGood);

  // Hears of each checkpoint that went, before its time, because there was no room.
  void on_made_room(std::function<void(int64_t step)> tell) { made_room_ = std::move(tell); }

  // Removes checkpoints, the oldest first, until so many bytes are free; as many good ones stay as said.
  // Error(kWrite) when that is not enough.
  void make_room(uint64_t bytes, int64_t least_good = kLeastGood);

  // The newest checkpoint whose every byte is as it was written. Each newer one adds a complaint with the
  // file and what is wrong with it. A checkpoint of a later version of Vitrail is an Error, not passed over.
  std::optional<OpenedCheckpoint> newest_good(std::vector<std::string>* complaints = nullptr);

  // This one, checked in full; Error(kData) when it is bad or missing.
  OpenedCheckpoint open(int64_t step);

  std::vector<int64_t> steps() const;  // of all checkpoint folders, good or bad, ascending
  std::string folder_of(int64_t step) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string unfinished(const std::string& name) const;
  void write_folder(const CheckpointContent& content);
  void write_making_room(const CheckpointContent& content, int64_t least_good);
  bool is_good(int64_t step);
  std::vector<int64_t> removable(int64_t good_ones);
  void remove(int64_t step);
  void remove_for_room(int64_t step);

  std::string folder_;
  CheckpointPolicy policy_;
  std::function<void(int64_t)> made_room_;
  std::map<int64_t, bool> judged_;  // checkpoints already read in full, and whether they were good
};

}  // namespace vitrail
