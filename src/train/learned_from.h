// What a model has learned from, kept with it: which data, how it was divided, and the marks of some of its
// images. Written by training into checkpoints and model folders, read by `eval`. Holds no path: a model may
// be published.
#pragma once

#include "base/json.h"
#include "data/data_config.h"
#include "data/overlap.h"

namespace vitrail {

struct LearnedFrom {
  DataConfig division;            // how validation and classes were taken from the data; `train`, `val` empty
  bool split = false;             // whether the validation part comes of the training data
  std::string names, contents;    // fingerprints of the training part
  int64_t size = 0;               // images of it
  std::vector<ImageMark> images;  // some of them, spread evenly
};

inline constexpr const char* kLearnedFrom = "learned_from";  // its name among the facts of a manifest

LearnedFrom learned_from(const DataConfig& config, const Dataset& train);

Json to_json(const LearnedFrom& learned);
// Nothing where the facts do not say.
std::optional<LearnedFrom> read_learned_from(const Json& facts);

// Whether this is the training part it tells of: by names, labels and some of the contents.
bool is_same(const LearnedFrom& learned, const Dataset& train);

}  // namespace vitrail
