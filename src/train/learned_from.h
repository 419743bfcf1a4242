// Says what a model has learned from, and is kept with it in checkpoints and model folders: which data, how
// it was divided, and the marks of some of its images. Holds no path, since a model may be published.
#pragma once

#include "base/json.h"
#include "data/data_config.h"
#include "data/overlap.h"
#include "io/sealed_folder.h"

namespace vitrail {

struct LearnedFrom {
  DataConfig division;            // how validation and classes were taken from the data; no `train`, `val`
  bool split = false;             // whether the validation part was split off the training data
  std::string names, contents;    // fingerprints of the training part
  int64_t size = 0;               // images of the training part
  std::vector<ImageMark> images;  // marks of some of these images, spread evenly
};

LearnedFrom learned_from(const DataConfig& config, const Dataset& train);

Json to_json(const LearnedFrom& learned);
// Returns nothing where the facts, kept_facts() or those of a checkpoint, hold no such record.
std::optional<LearnedFrom> read_learned_from(const Json& facts);

// Returns whether `train` is the recorded training part: by names, labels and some of the contents.
bool is_same(const LearnedFrom& learned, const Dataset& train);

}  // namespace vitrail
