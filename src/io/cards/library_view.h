// What the library a dialect belongs to makes of the files that write_model writes for it: what it takes from
// them, and its own defaults for what they cannot say. Vitrail's own readers find everything in a block that
// no other library looks at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/model_files.h"

namespace vitrail {

struct LibraryView {
  std::string library;  // as its users call it
  VitConfig config;
  // Nothing: the files do not say, and whoever uses the library does.
  std::optional<PreprocessConfig> preprocess;
  ScoreKind scores = ScoreKind::kSoftmax;
};
LibraryView library_view(const ModelCard& card, const WriteOptions& options);

// One line for each thing the library will compute otherwise than the card says: "norm_eps (layernorm
// epsilon): 0.1 here, timm will use 1e-06".
std::vector<std::string> not_kept(const ModelCard& card, const LibraryView& view);

// Why the library will not load the files at all, though they can be written and Vitrail reads them; empty:
// it will.
std::string library_refuses(const ModelCard& card, const WriteOptions& options);

}  // namespace vitrail
