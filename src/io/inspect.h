// Finds what a weight file or a model folder holds: its card, its tensors, their statistics. Prints nothing.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/model_files.h"
#include "io/tensor_stats.h"

namespace vitrail {

struct InspectedTensor {
  TensorInfo info;
  std::optional<TensorStats> stats;
};

struct ModelContents {
  std::optional<ModelCard> card;
  std::string not_a_model;  // why, when there is no card
  std::string path, format;
  std::map<std::string, std::string> metadata;
  std::vector<InspectedTensor> rows;
  size_t stored = 0;  // tensors, before the filter
  int64_t elems = 0, not_finite = 0;
  uint64_t bytes = 0;
};

struct InspectRequest {
  std::string path, arch = {};
  std::string filter = {};  // only tensors whose name matches (* and ?); empty: all
  bool stats = false;       // read every tensor
  std::function<void(size_t done, size_t total)> progress = {};
};
// A file that is no ViT is still worth looking at: why it is none is said beside its tensors.
ModelContents inspect_model(const InspectRequest& request);
nlohmann::ordered_json to_json(const ModelContents& report);
// Returns a row for each tensor and one of their sums; `stats`: with the columns of their statistics.
std::string tensor_table(const ModelContents& report, bool stats);
// Returns what a reader should know: warnings of the card, a filter that matches nothing, numbers that are
// not finite.
std::vector<std::string> warnings_of(const ModelContents& report, const std::string& filter);

}  // namespace vitrail
