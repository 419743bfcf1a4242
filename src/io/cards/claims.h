// What a config file says about a model, before it is held against the tensors. One reader per kind of
// config: Vitrail's own block, Hugging Face's, timm's, an architecture's name, a dialect's habits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/model_files.h"

namespace vitrail {

struct Claims {
  std::string origin;           // shown in notes and errors: "config.json"
  Json model = Json::object();  // fields of VitConfig by name
  std::optional<PreprocessConfig> preprocess;
  std::string pictures_origin;   // who says `preprocess`, when not `origin`
  std::string pictures_warning;  // why `preprocess` is a default rather than said; empty when it is said
  std::vector<std::string> labels;
  std::optional<ScoreKind> scores;
  // timm resizes the table when positions are another image's than the model's, or, where the model is made
  // for any size, than those the images are prepared in.
  std::optional<ImageSize> run_image;
  std::optional<Interpolation> square_interpolation;  // see ModelCard
  std::vector<std::string> notes;
};

// Vitrail's own: {"vitrail": {"model": {...}, "preprocess": {...}, "scores": "sigmoid"}, "id2label": {...}}.
Claims vitrail_claims(const Json& root, const std::string& origin);
Json vitrail_block(const ModelCard& card);

// Hugging Face's config.json and, where there is one, preprocessor_config.json.
Claims hf_claims(const Json& config, const Json* preprocessor);

// timm's hub config.json: architecture, pretrained_cfg, model_args.
Claims timm_claims(const Json& config);

// A zoo row; its numerics belong to it only in timm's own dialect. Only classes and, beside a class token,
// the pool stay open.
Claims architecture_claims(const std::string& name, Dialect dialect);

// What every model of the dialect has in common: epsilon, GELU, position rule.
Claims dialect_claims(Dialect dialect);

// What a weight file without a config tells about the images of its model.
struct PictureHints {
  std::string file_name;
  bool big_vision = false;  // named as big_vision's own classifiers are
};
struct PictureHabit {
  PreprocessConfig preprocess;
  std::string origin;
};
// How torchvision and google treat the images of such a model; nothing for the others.
std::optional<PictureHabit> dialect_preprocess(Dialect dialect, const VitConfig& config,
                                               const PictureHints& hints);

// id2label as a list; empty when absent or when it holds only the names transformers makes up.
std::vector<std::string> read_labels(const Json& root, const std::string& origin);

constexpr double kLeastCropPct = 0.01, kMostCropPct = 16;  // beyond 1 the crop is filled up with black

// The same image treatment for another input size: the same share of the image is seen. timm resizes
// bilinearly for crops that are not square, and for square ones by `square`, or as before where that is not
// known.
PreprocessConfig at_size(PreprocessConfig preprocess, int64_t height, int64_t width,
                         std::optional<Interpolation> square = std::nullopt);

// Throws Error(kConfig) naming the rule broken.
void validate(const PreprocessConfig& preprocess, const VitConfig& config);

}  // namespace vitrail
