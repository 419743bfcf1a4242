// Decides which parameters a run trains, with which learning rate and weight decay: from names and ranks to
// lr_scale and decay, by timm's rules. Knows the canonical names' first parts, not the model.
#pragma once

#include "optim/optimizer.h"

namespace vitrail {

struct ParamGroupConfig {
  std::vector<std::string> freeze;
  bool linear_probe = false;
  double layer_decay = 1;
  bool decay_vectors = false;
  std::vector<std::string> no_decay = {"cls_token", "dist_token", "reg_token", "pos_embed"};

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("freeze", c.freeze,
      "patterns of parameters to leave as they are (* stands for anything); !pattern trains again; the last "
      "match holds");
    v("linear_probe", c.linear_probe, "train only the heads");
    v("layer_decay", c.layer_decay, "each block learns at this times the rate of the one above; 1: alike");
    v("decay_vectors", c.decay_vectors, "weight decay also for biases, norms and other vectors");
    v("no_decay", c.no_decay, "patterns of parameters without weight decay");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const ParamGroupConfig& config);

struct NamedParam {
  std::string name;
  TensorDesc desc;
};

// Matches `*` with any characters, none included; everything else matches itself.
bool matches_pattern(std::string_view name, std::string_view pattern);

// Returns the layer for layer-wise decay: 0 for tokens, positions and patch embedding; i + 1 for block i; the
// last norm goes with the last block; the rest is depth + 1.
int64_t layer_of(std::string_view name, int64_t depth);

// Returns the parameters to train, in the order given. Throws Error(kConfig) when a pattern that is not
// one of the default matches no parameter, or nothing is left to train.
std::vector<TrainedParam> group_params(const std::vector<NamedParam>& params, const ParamGroupConfig& config,
                                       double weight_decay);

}  // namespace vitrail
