// Holds what a config file states of a model, before it is checked against the tensors. Each kind of config
// has a reader: Vitrail's own block, Hugging Face's, timm's, an architecture's name, a dialect's defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/model_files.h"

namespace vitrail {

struct StatedConfig {
  std::string origin;           // shown in notes and errors: "config.json"
  Json model = Json::object();  // fields of VitConfig by name
  std::optional<PreprocessConfig> preprocess;
  std::string images_origin;   // the source of `preprocess`, when not `origin`
  std::string images_warning;  // why `preprocess` is a default rather than stated; empty when it is stated
  std::vector<std::string> labels;
  std::optional<ScoreKind> scores;
  // The size at which the model runs, when its positions belong to another: timm then resizes the position
  // table to the model's image size or, for a model made for any size, to that of its preprocessing.
  std::optional<ImageSize> run_image;
  std::optional<Interpolation> square_interpolation;  // see ModelCard
  bool pads_images = false;                           // see ModelCard
  bool swaps_channels = false;                        // the model takes BGR: its patches are read reversed
  bool drops_pre_logits = false;                      // its library leaves them out as it loads the tensors
  std::vector<std::string> notes;
};

// Reads Vitrail's own block: {"vitrail": {"model": {...}, "preprocess": {...}, "scores": "sigmoid"},
// "id2label": {...}}.
StatedConfig read_vitrail_config(const Json& root, const std::string& origin);
Json vitrail_block(const ModelCard& card);

// Reads Hugging Face's config.json and, where there is one, preprocessor_config.json.
StatedConfig read_hf_config(const Json& config, const Json* preprocessor);

// Reads how transformers' pipeline scores; the number of classes is known by then.
void read_hf_scores(const Json& config, StatedConfig* stated);

// Reads timm's hub config.json: architecture, pretrained_cfg, model_args.
StatedConfig read_timm_config(const Json& config);

// Takes the fields of a zoo row; its numerics belong to it only in timm's own dialect. Only classes and,
// beside a class token, the pool stay open.
StatedConfig architecture_config(const std::string& name, Dialect dialect);

// Returns what every model of the dialect has in common: epsilon, GELU, position rule.
StatedConfig dialect_config(Dialect dialect);

// Holds what a weight file without a config reveals about the preprocessing of its model.
struct ImageHints {
  std::string file_name;
  bool big_vision = false;  // named as big_vision's own classifiers are
};
// Says how a dialect preprocesses images, and by what that is known.
struct DialectPreprocess {
  PreprocessConfig preprocess;
  std::string origin;
};
// Returns how torchvision and google preprocess images for such a model; nothing for the other dialects.
std::optional<DialectPreprocess> dialect_preprocess(Dialect dialect, const VitConfig& config,
                                                    const ImageHints& hints);

// Returns id2label as a list; empty when absent or when it holds only transformers' placeholder names.
std::vector<std::string> read_labels(const Json& root, const std::string& origin);

// Reads timm's names of classes: a list, or a dict by number that may leave numbers out.
void read_label_names(const Json& object, const char* key, const char* file, StatedConfig* stated);

constexpr double kLeastCropPct = 0.01, kMostCropPct = 16;  // beyond 1 the crop is padded with black

// Returns the same preprocessing for another input size, which sees the same share of the image. timm resizes
// bilinearly for crops that are not square, and for square ones by `square`, or as before where that is
// unknown.
PreprocessConfig at_size(PreprocessConfig preprocess, int64_t height, int64_t width,
                         std::optional<Interpolation> square = std::nullopt);

// Throws Error(kConfig) naming the broken rule.
void validate(const PreprocessConfig& preprocess, const VitConfig& config);

}  // namespace vitrail
