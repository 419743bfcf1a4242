// Says what a model has learned from, and is kept with it in checkpoints and model folders: which data, how
// it was divided, and the marks of some of its images and of those that the model it began with had learned
// from. Holds no path, since a model may be published.
#pragma once

#include "base/json.h"
#include "data/data_config.h"
#include "data/overlap.h"
#include "io/sealed_folder.h"

namespace vitrail {

// Images that an earlier model had learned from, and its successors had not.
struct EarlierImages {
  int64_t size = 0;
  std::vector<ImageMark> images;  // marks of some of them
};

struct LearnedFrom {
  DataConfig division;            // how validation and classes were taken from the data; no `train`, `val`
  bool split = false;             // whether the validation part was split off the training data
  std::string names, contents;    // fingerprints of the training part
  int64_t size = 0;               // images of the training part
  std::vector<ImageMark> images;  // marks of some of these images, spread evenly
  std::vector<EarlierImages> earlier =
      {};  // newest first; no image is in two of them, or in the training part
};

LearnedFrom learned_from(const DataConfig& config, const Dataset& train);

// Returns what the model that a run begins with had learned from, less the training part, `now`, of the run;
// a few sets of a few marks each. Nothing where the model keeps no marks, or where there is none (an empty
// path).
std::vector<EarlierImages> learned_earlier(const std::string& model, const LearnedFrom& now,
                                           const Dataset& train);

Json to_json(const LearnedFrom& learned);
// Returns nothing where the facts, kept_facts() or those of a checkpoint, hold no such record.
std::optional<LearnedFrom> read_learned_from(const Json& facts);
// Returns whether they say what was learned earlier, if only that nothing was: earlier versions did not.
bool knows_earlier(const Json& facts);

// Returns whether `train` is the recorded training part: by names, labels and some of the contents.
bool is_same(const LearnedFrom& learned, const Dataset& train);

}  // namespace vitrail
