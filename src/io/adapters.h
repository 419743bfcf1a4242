// LoRA adapters stored beside a model's weights: adapters.safetensors with "<linear>.lora_a.weight" and
// "<linear>.lora_b.weight" in the parameter table's layout, rank and alpha in its metadata. They are merged
// into the weights when the folder is opened. Knows no dialect.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/model_files.h"
#include "models/lora.h"

namespace vitrail {

constexpr const char* kAdaptersFile = "adapters.safetensors";

// Writes the adapters into a folder that holds the model already.
void write_adapters(const std::string& folder, const VitConfig& config, const LoraConfig& lora,
                    const ParamReader& read);

class Adapters {
 public:
  // Throws Error(kData) unless the file holds exactly the adapters of some of the model's linears.
  Adapters(const std::string& path, const VitConfig& config);

  int64_t rank() const { return lora_.rank; }
  // Adds B A, scaled, to the weight, where the parameter has an adapter.
  void merge(const ParamSpec& spec, std::span<float> weight) const;

 private:
  std::vector<float> read(const std::string& name) const;

  std::unique_ptr<TensorSource> source_;
  LoraConfig lora_;
  std::map<std::string, LoraAdapter> adapters_;  // by the weight
};

}  // namespace vitrail
