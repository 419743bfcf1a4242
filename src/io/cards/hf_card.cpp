// Reads a config.json and preprocessor_config.json of Hugging Face transformers.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/hf_processor.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

constexpr const char* kFile = "config.json";

// A model type of transformers that is a plain ViT, with the defaults of its config class for keys that a
// config.json leaves out. All of them: 768 wide, 12 blocks of 12 heads, an MLP of 3072, 3 channels, images of
// 224 in patches of 16, biases on q, k and v, erf GELU.
struct ModelType {
  const char* name;
  double norm_eps;
  const char* processor;
  bool mean_pool = false;  // classifies the mean of all tokens, without a class token
};
constexpr ModelType kModelTypes[] = {
    {"vit", 1e-12, "ViT"},
    {"deit", 1e-12, "DeiT"},
    {"vit_msn", 1e-6, "ViT"},
    {"ijepa", 1e-12, "ViT", true},
};

struct IntKey {
  const char* key;
  const char* field;
  int64_t otherwise;
};
constexpr IntKey kIntKeys[] = {{"hidden_size", "width", 768},
                               {"num_hidden_layers", "depth", 12},
                               {"num_attention_heads", "heads", 12},
                               {"intermediate_size", "mlp", 3072},
                               {"num_channels", "channels", 3}};

// Other families were refused before, by their names.
const ModelType& model_type(const Json& config) {
  const Json* type = json_find(config, "model_type");
  if (!type) return kModelTypes[0];
  const std::string name = json_string(*type, kFile, "model_type");
  for (const ModelType& row : kModelTypes)
    if (name == row.name) return row;
  throw Error(ErrorKind::kData,
              strf("config.json: model_type is %s; vit and deit are supported", quoted(name).c_str()));
}

// The activation after a base model's pooler; classifiers have no pooler.
void read_pooler(const Json& config, StatedConfig* stated) {
  const Json *act = json_find(config, "pooler_act"), *kinds = json_find(config, "architectures");
  if (!act || (kinds && kinds->dump().find("ForImageClassification") != std::string::npos)) return;
  set_pooler_activation(*act, "pooler_act", stated);
}

void read_architecture(const Json& config, const ModelType& type, StatedConfig* stated) {
  Json& model = stated->model;
  for (const IntKey& row : kIntKeys) {
    const Json* value = json_find(config, row.key);
    model[row.field] = value ? json_int(*value, kFile, row.key) : row.otherwise;
  }
  HfSide patch{16, 16};
  if (const Json* value = json_find(config, "patch_size")) patch = read_side(*value, kFile, "patch_size");
  model["patch"] = patch.height;
  model["patch_width"] = patch.width == patch.height ? 0 : patch.width;
  const Json *bias = json_find(config, "qkv_bias"), *eps = json_find(config, "layer_norm_eps"),
             *act = json_find(config, "hidden_act");
  model["qkv_bias"] = bias ? json_bool(*bias, kFile, "qkv_bias") : true;
  model["norm_eps"] = eps ? json_number(*eps, kFile, "layer_norm_eps") : type.norm_eps;
  set_activation(act ? *act : Json("gelu"), "hidden_act", Dialect::kHf, stated);
  if (type.mean_pool) model["pool"] = enum_name(Pool::kMean);
}

// Returns the images' config with the processor that config.json may name in its place.
std::optional<Json> with_processor(const Json& config, const Json* images) {
  const Json* type = json_find(config, "image_processor_type");
  if (!images || !type || json_find(*images, "image_processor_type") ||
      json_find(*images, "feature_extractor_type"))
    return std::nullopt;
  Json named = *images;
  named["image_processor_type"] = *type;
  return named;
}

// With a head each, class and distillation token are averaged; without labels the tensors do not tell them.
void refuse_averaged_tokens(const Json& config, const StatedConfig& stated) {
  const Json* kinds = json_find(config, "architectures");
  VT_REQUIRE(
      !kinds || kinds->dump().find("WithTeacher") == std::string::npos ||
          stated.model.value("classes", int64_t{1}) > 0,
      ErrorKind::kData,
      "config.json: DeiTForImageClassificationWithTeacher without labels averages two tokens, which is "
      "not supported");
}

}  // namespace

// Follows transformers' pipeline: a single label is binary, whatever the problem is called.
void read_hf_scores(const Json& config, StatedConfig* stated) {
  const Json* value = json_find(config, "problem_type");
  const std::string problem = value ? json_string(*value, kFile, "problem_type") : "";
  const bool one = stated->model.value("classes", int64_t{0}) == 1;
  if (one || problem == "multi_label_classification")
    stated->scores = ScoreKind::kSigmoid;
  else if (value)
    stated->scores = ScoreKind::kSoftmax;
  if (value && !one && problem != "multi_label_classification" && problem != "single_label_classification")
    stated->notes.push_back(strf("problem_type %s is no classification; scored by softmax all the same",
                                 quoted(problem).c_str()));
}

StatedConfig read_hf_config(const Json& config, const Json* preprocessor) {
  const std::optional<Json> named = with_processor(config, preprocessor);
  if (named) preprocessor = &*named;
  StatedConfig stated{.origin = kFile};
  const ModelType& type = model_type(config);
  read_pooler(config, &stated);
  read_architecture(config, type, &stated);
  HfSide image{224, 224};
  if (const Json* value = json_find(config, "image_size")) image = read_side(*value, kFile, "image_size");
  stated.model["image_height"] = image.height;
  stated.model["image_width"] = image.width;
  if (const Json* value = json_find(config, "id2label"); value && value->is_object())
    stated.model["classes"] = static_cast<int64_t>(value->size());
  else if (const Json* count = json_find(config, "num_labels"))
    stated.model["classes"] = json_int(*count, kFile, "num_labels");
  stated.labels = read_labels(config, kFile);
  refuse_averaged_tokens(config, stated);
  read_hf_scores(config, &stated);
  stated.preprocess = read_preprocess(preprocessor, type.processor, image, stated.model["channels"], &stated);
  return stated;
}

}  // namespace vitrail
