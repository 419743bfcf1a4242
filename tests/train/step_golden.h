// Training goldens (tests/golden/train): ten steps of a tiny ViT by torch and timm. Reads a case, sets up the
// same step and makes the same batches by rule.
#pragma once

#include <algorithm>
#include <filesystem>

#include "base/rng.h"
#include "io/config_json.h"
#include "io/safetensors.h"
#include "models/vit_init.h"
#include "optim/golden_json.h"
#include "optim/param_groups.h"
#include "optim/schedule.h"
#include "source_root.h"
#include "train/step_config.h"

namespace vitrail::golden {

struct StepCase {
  std::string name;
  Json json;
  std::unique_ptr<TensorSource> tensors;
  StepConfig config;
  int64_t steps = 0, batch = 0, accumulate = 1;

  std::vector<double> numbers(const char* key) const { return json.at(key).get<std::vector<double>>(); }
  std::vector<double> tensor(const std::string& key) const {
    const auto index = tensors->find(key);
    if (!index) return {};
    std::vector<double> values(tensors->tensors()[*index].bytes / sizeof(double));
    tensors->read(*index, std::as_writable_bytes(std::span(values)));
    return values;
  }
};

inline std::vector<std::string> step_cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(VT_SOURCE_DIR "/tests/golden/train"))
    if (file.path().extension() == ".safetensors") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline StepConfig step_config(const Json& json, DType dtype) {
  StepConfig config;
  from_json(json.at("model"), "model", &config.model);
  config.master = dtype;
  config.optim = read_config<OptimConfig>(json.at("optim"));
  const Json& loss = json.at("loss");
  config.loss = enum_from_name<LossKind>(loss.at("kind").get<std::string>()).value();
  if (loss.contains("alpha"))
    config.distill = {DistillKind::kSoft, "", loss.at("alpha"), loss.at("temperature")};
  ParamGroupConfig groups{.layer_decay = json.value("layer_decay", 1.0)};
  groups.freeze = json.value("freeze", std::vector<std::string>());
  groups.linear_probe = json.value("linear_probe", false);
  std::vector<NamedParam> params;
  for (const ParamSpec& spec : vit_params(config.model)) params.push_back({spec.name, {dtype, spec.shape}});
  config.trained = group_params(params, groups, config.optim.weight_decay);
  return config;
}

inline StepCase load_step_case(const std::string& name, DType dtype) {
  StepCase c{.name = name, .json = read_train(name + ".json")};
  c.tensors = open_safetensors(VT_SOURCE_DIR "/tests/golden/train/" + name + ".safetensors");
  c.config = step_config(c.json, dtype);
  c.steps = c.json.at("steps");
  c.batch = c.json.at("batch");
  c.accumulate = c.json.at("accumulate");
  c.config.micro_batch = c.config.eval_batch = c.batch / c.accumulate;
  return c;
}

// All images, targets and teacher's probabilities of a case, by rule.
struct StepData {
  std::vector<float> images, targets, teacher;
};

inline StepData step_data(const StepCase& c) {
  const VitConfig& m = c.config.model;
  const auto count = static_cast<size_t>(c.steps * c.batch), classes = static_cast<size_t>(m.classes);
  StepData data;
  data.images.resize(count * static_cast<size_t>(m.channels * m.image_height * m.image_width));
  fill_by_rule(
      {"input", {{'B', c.steps * c.batch}, {'C', m.channels}, {'Y', m.image_height}, {'X', m.image_width}}},
      data.images);
  const double smooth = c.json.at("loss").value("smoothing", 0.0),
               off = smooth / static_cast<double>(classes);
  data.targets.assign(count * classes, static_cast<float>(off));
  for (size_t i = 0; i < count; ++i)
    data.targets[i * classes + counter_hash(name_key("labels"), i) % classes] =
        static_cast<float>(off + (1 - smooth));
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> row(classes);
    double sum = 0;
    for (size_t k = 0; k < classes; ++k)
      sum += row[k] = static_cast<double>(counter_uniform(name_key("teacher"), i * classes + k)) + 1.0625;
    for (double value : row) data.teacher.push_back(static_cast<float>(value / sum));
  }
  return data;
}

// The part of a parameter whose gradient is zero in theory, [first, last): softmax does not change when the
// same is added to every key.
inline std::pair<size_t, size_t> key_shift(const std::string& name, size_t count) {
  if (name.ends_with("attn.qkv.bias")) return {count / 3, 2 * count / 3};
  if (name.ends_with("attn_pool.kv.bias")) return {0, count / 2};
  if (name.ends_with("k_norm.bias")) return {0, count};
  return {0, 0};
}

}  // namespace vitrail::golden
