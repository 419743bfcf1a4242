// A request for attention maps, and the maps of one image from an engine that ran it. Knows no files and no
// colours; Predictor::explain runs it.
#pragma once

#include <string>
#include <vector>

#include "api/attention_maps.h"
#include "api/engine.h"

namespace vitrail {

struct AttentionRequest {
  bool heads = false, mean = false;  // those of one block
  bool rollout = false;              // through all blocks
  int64_t layer = 0;                 // number of that block, from 0

  bool one_block() const { return heads || mean; }
};

struct NamedMap {
  std::string name, label;  // "head-03" for files, "block 11 head 3" for people
  PatchMap map;
};

// What a model made of one image, and where it looked.
struct Explanation {
  std::vector<NamedMap> maps;
  std::vector<float> logits, scores;  // scores: the probabilities; both empty for a model without classes
};

// Parses "heads", "mean", "rollout" or "all" for block `layer`; -1 means the last block. Throws Error(kUsage)
// for another word or a block that the model does not have; `setting` names the block in messages
// ("--layer").
AttentionRequest attention_request(const std::string& method, int64_t layer, const VitConfig& config,
                                   const char* setting);

// Returns engine options for one image with the outputs that the request needs.
EngineOptions options_for(const AttentionRequest& request, EngineOptions options);

// Returns the maps of the image that the engine ran last. Throws Error(kNumerics) when weights are not
// finite.
std::vector<NamedMap> attention_maps(const Engine& engine, const AttentionRequest& request);

}  // namespace vitrail
