// Checkpoints that are complete or absent: a folder `checkpoints` of `step-N` folders, each with the model as
// published models look, the state to resume from, and a manifest of checksums. One rank or several write and
// read it together. Must not know what the state means.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/checkpoint/partners.h"
#include "io/checkpoint/pieces.h"
#include "io/tensor_source.h"

namespace vitrail {

// The number of good checkpoints kept, since one may turn out damaged.
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
  Json facts = Json::object();       // the run's own facts, stored in the manifest
  std::vector<TensorToWrite> state;  // everything an exact resume needs, by logical name; of one rank
  std::vector<PartToWrite> parts;  // of several ranks: what this one writes, all of them together everything
  std::function<void()> before;    // called before anything else, by the first rank; may be absent
  // Writes the model's files, plain files only, into the empty folder it receives; may be absent. Called by
  // the first rank, while the others call help_model.
  std::function<void(const std::string& folder)> write_model;
  std::function<void()> help_model;
  bool counts = true;        // false: no older checkpoint is one too many because of it
  int64_t replaces = -1;     // the step of a checkpoint that goes once this one is there
  uint64_t model_bytes = 0;  // approximate size of the model's files, for the check of free space
};

struct OpenedCheckpoint {
  int64_t step = 0;
  std::string folder;  // a model folder as well, when a model was written
  Json facts;
  std::unique_ptr<TensorSource> state;
};

// A save by several ranks that failed on one of them; every rank throws it.
class SaveFailed : public Error {
 public:
  SaveFailed(int rank, ErrorKind kind, const std::string& text, const std::string& hint)
      : Error(kind, strf("rank %d: %s", rank, text.c_str()), hint), rank_(rank), own_(text) {}
  int rank() const { return rank_; }
  const std::string& own() const { return own_; }  // the message without the rank

 private:
  int rank_;
  std::string own_;
};

class SharedSave;

class CheckpointStore {
 public:
  // Opens the store without touching it, which suffices for reading. A missing folder is an empty store.
  explicit CheckpointStore(std::string run_folder, CheckpointPolicy policy = {});

  // Prepares the folder for writing; called once, by the holder of the run's lock, before the first save. It
  // creates the folder, verifies that it can be written, puts back what a crash left moved aside, and removes
  // what dead processes of this host left unfinished; with `sole`, no other process can be at work here, so
  // all unfinished work is removed. Returns what it removed.
  std::vector<std::string> prepare(bool sole = false);

  // Saves a checkpoint, durable on return. After Error(kWrite) nothing unfinished remains and the newest
  // checkpoints are unchanged. Older ones are removed by the policy; where there is no room for one more, and
  // for no other reason, the oldest are removed first, one by one, but `least_good` good ones stay. With
  // partners, all of them call it: each writes its piece, the first rank the rest; any failure is SaveFailed
  // on all of them.
  void save(const CheckpointContent& content, int64_t least_good = kLeastGood, Partners* partners = nullptr);

  // Sets a callback for each checkpoint that is removed early because there was no room.
  void on_made_room(std::function<void(int64_t step)> tell) { made_room_ = std::move(tell); }

  // Removes checkpoints, the oldest first, until `bytes` are free; `least_good` good ones stay. Throws
  // Error(kWrite) when that is not enough.
  void make_room(uint64_t bytes, int64_t least_good = kLeastGood);

  // Returns the newest checkpoint whose every byte is as it was written. Each newer, bad one adds a message
  // with the file and what is wrong with it. A checkpoint of a later version of Vitrail is an Error, never
  // skipped. Partners call it together: each checks a share of the bytes, and all get the same checkpoint.
  // `wanted`, if given, says by its facts whether a good one will do.
  using Wanted = std::function<bool(const Json& facts)>;
  std::optional<OpenedCheckpoint> newest_good(std::vector<std::string>* problems = nullptr,
                                              Partners* partners = nullptr, const Wanted& wanted = {});
  // Removes the checkpoints of later steps, which the run has gone back before.
  void remove_after(int64_t step);

  // Opens this checkpoint, checked in full; throws Error(kData) when it is bad or missing, on all partners.
  OpenedCheckpoint open(int64_t step, Partners* partners = nullptr);

  std::vector<int64_t> steps() const;  // of all checkpoint folders, good or bad, ascending
  std::string folder_of(int64_t step) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string unfinished(const std::string& name) const;
  void save_as_first(const CheckpointContent& content, int64_t least_good, SharedSave* together);
  void write_folder(const CheckpointContent& content, SharedSave* together);
  void write_making_room(const CheckpointContent& content, int64_t least_good, SharedSave* together);
  std::vector<int64_t> seen_by_first(Partners& partners) const;
  bool is_good(int64_t step);
  std::vector<int64_t> removable(int64_t good_ones);
  void remove(int64_t step);
  void remove_outdated(const CheckpointContent& content);
  void remove_for_room(int64_t step);

  std::string folder_;
  CheckpointPolicy policy_;
  std::function<void(int64_t)> made_room_;
  std::map<int64_t, bool> judged_;  // checkpoints already read in full, and whether they were good
};

}  // namespace vitrail
