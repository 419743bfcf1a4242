// Table I of "Performance Analysis of Parallelization on Vision Transformer" (a ViT-Base encoder by Eigen on
// a Ryzen 7 5800X) beside its program run here (bench/seed_000) and beside an engine of ours, with the
// arithmetic that explains it. Runs nothing itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/profile.h"
#include "models/vit_config.h"

namespace vitrail {

struct SeedTimes {
  struct Row {
    std::string name;  // that of the profile's part
    double seconds = 0, macs = 0;
  };
  int64_t cores = 0, layers = 0, heads = 0;
  double head_macs = 0, output_macs = 0;  // of one head; of the output projection
  std::vector<Row> rows;

  const Row& at(const std::string& name) const;
  // The multiplications of one thread a second, by the MLP, which runs on one.
  double rate() const;
  // Returns what arithmetic predicts for attention: heads on their cores, then the output projection on one.
  double predicted_attention() const;
};

// Throws Error(kUsage) for all but ViT-Base at 224 px on one image: nothing else can stand beside it.
void require_like_seed(const VitConfig& model, int64_t batch);

// Throws Error(kData) where the text is not what the program prints.
SeedTimes read_seed_times(const std::string& text);

// `parts` are a profile's, by part, of ViT-Base with batch 1.
std::string seed_table(const SeedTimes& seed, const std::vector<ProfileRow>& parts);
// Says in sentences what the times are made of.
std::string seed_explanation(const SeedTimes& seed);
nlohmann::ordered_json to_json(const SeedTimes& seed);

}  // namespace vitrail
