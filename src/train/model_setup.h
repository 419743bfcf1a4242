// The model that a run trains: opened or made from an architecture, fitted to the data's classes and the
// image size, with a source for every parameter. Records its decisions as notes.
#pragma once

#include "io/model_files.h"
#include "runtime/persistent_store.h"
#include "train/train_config.h"

namespace vitrail {

struct PreparedModel {
  ModelCard card;
  std::unique_ptr<OpenedModel> opened;  // null: from scratch
  std::vector<std::string> notes;       // "head replaced: 1000 classes of the file, 10 of the data"
  bool new_head = false;
  InitStyle style = {};  // of what is drawn: all from scratch, else a new head and adapters
  uint64_t seed = 0;

  LoraConfig lora = {};  // the adapters it is trained with

  void fill(const ParamSpec& spec, std::span<float> target) const;
  // Returns the same as a function of names, for as long as this object lives.
  ParamFiller filler() const;
};

// Prepares the model; `classes` are the data's, in order, and `scores` says how the loss interprets the
// logits.
std::unique_ptr<PreparedModel> prepare_model(const ModelSettings& settings, uint64_t seed,
                                             const std::vector<std::string>& classes, ScoreKind scores,
                                             const LoraConfig& lora = {});

// Returns the facts of a checkpoint about a model: its config and preprocessing, as its files and the
// settings have come to them. The number of classes is the data's.
Json card_facts(const ModelCard& card);

// Returns the heads of the model that the settings describe; 0 where its files cannot be read.
int64_t heads_of(const ModelSettings& settings);

// Returns all parameters of a step: the model's and its adapters'.
std::vector<ParamSpec> step_params(const VitConfig& config, const LoraConfig& lora);

}  // namespace vitrail
