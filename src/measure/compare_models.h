// Two models run on one image and compared layer by layer. Knows no option and prints nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/engine.h"

namespace vitrail {

// Everything of a model that is compared; the model itself is gone by then.
struct ModelTrace {
  ModelCard card;
  std::vector<std::pair<std::string, std::vector<float>>> layers;  // in the order of computation
  size_t nodes = 0;                                                // of the program that ran
};

struct TraceRequest {
  std::string path;
  OpenOptions open;
  EngineOptions engine;
  std::string image = {};                     // an image file; empty: a fixed pattern
  const std::vector<float>* input = nullptr;  // in place of both
};
ModelTrace trace_model(const TraceRequest& request);

struct LayerDifference {
  std::string name;
  double max = 0, relative = 0;  // relative to the largest magnitude of A
};
// NaN on one side only is an infinite difference.
LayerDifference difference_of(const std::string& name, const std::vector<float>& a,
                              const std::vector<float>& b);

struct ModelComparison {
  std::vector<std::string> facts;  // in which the cards differ
  std::vector<LayerDifference> layers;
  std::string first;  // the first layer that differs by more than the tolerance; empty: none does
};
// Error(kCheck) when the parameters have other shapes.
ModelComparison compare_models(const ModelTrace& a, const ModelTrace& b, double tolerance);

}  // namespace vitrail
