// Two models run on one image and compared layer by layer. Knows no option and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/engine.h"

namespace vitrail {

// The outputs and facts of a model that are compared; the model itself is no longer needed.
struct ModelTrace {
  ModelCard card;
  std::vector<std::pair<std::string, std::vector<float>>> layers;  // in the order of computation
  size_t nodes = 0;                                                // of the program that ran
};

struct TraceRequest {
  std::string path;
  OpenOptions open;
  EngineOptions engine;
  std::string image = {};                     // path of an image file; empty: a fixed pattern
  const std::vector<float>* input = nullptr;  // replaces both
};
ModelTrace trace_model(const TraceRequest& request);

struct LayerDifference {
  std::string name;
  double max = 0, relative = 0;  // relative to the largest magnitude of A
};
// Returns the difference of a layer; NaN on one side only is an infinite difference.
LayerDifference difference_of(const std::string& name, const std::vector<float>& a,
                              const std::vector<float>& b);

struct ModelComparison {
  std::vector<std::string> facts;  // facts in which the model cards differ
  std::vector<LayerDifference> layers;
  std::string first;  // the first layer that differs by more than the tolerance; empty: none does
};
// Throws Error(kCheck) when the parameters have different shapes.
ModelComparison compare_models(const ModelTrace& a, const ModelTrace& b, double tolerance);
// Returns one sentence: the same, or from which layer on not.
std::string verdict_of(const ModelComparison& found, double tolerance);
nlohmann::ordered_json to_json(const ModelComparison& found, double tolerance);
std::string layer_table(const std::vector<LayerDifference>& layers, double tolerance);

}  // namespace vitrail
