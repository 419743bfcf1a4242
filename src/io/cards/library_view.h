// Says how the library of a dialect interprets the files that write_model writes for it: the fields it reads,
// and its own defaults for what they cannot hold. Vitrail's own readers find everything in a block that no
// other library reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/model_files.h"

namespace vitrail {

struct LibraryView {
  std::string library;  // as its users call it
  VitConfig config;
  // The preprocessing; nothing where the files do not hold it and the library's user chooses.
  std::optional<PreprocessConfig> preprocess;
  ScoreKind scores = ScoreKind::kSoftmax;
};
LibraryView library_view(const ModelCard& card, const WriteOptions& options);

// Returns one line for each thing the library will compute differently from the card: "norm_eps (layernorm
// epsilon): 0.1 here, timm will use 1e-06".
std::vector<std::string> not_kept(const ModelCard& card, const LibraryView& view);

// Returns why the library cannot load the files at all, though they can be written and Vitrail reads them;
// empty: it can.
std::string library_refuses(const ModelCard& card, const WriteOptions& options);

}  // namespace vitrail
