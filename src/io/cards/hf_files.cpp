// Writes a config.json and preprocessor_config.json that Hugging Face transformers reads.
#include "io/cards/written_json.h"

#include "base/error.h"
#include "io/cards/hf_processor.h"

namespace vitrail {

namespace {

const char* architecture(const VitConfig& c) {
  if (c.distilled) return c.classes > 0 ? "DeiTForImageClassificationWithTeacher" : "DeiTModel";
  return c.classes > 0 ? "ViTForImageClassification" : "ViTModel";
}

const char* dtype_name(DType storage) {
  if (storage == DType::kF16) return "float16";
  return storage == DType::kBF16 ? "bfloat16" : "float32";
}

int resample_code(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return 0;
    case Interpolation::kLanczos:
      return 1;
    case Interpolation::kBilinear:
      return 2;
    case Interpolation::kBicubic:
      return 3;
    case Interpolation::kBox:
      return 4;
    case Interpolation::kHamming:
      return 5;
  }
  return 2;
}

}  // namespace

Json label_table(const std::vector<std::string>& labels) {
  Json table = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) table[std::to_string(i)] = labels[i];
  return table;
}

Json hf_config_json(const ModelCard& card, DType storage) {
  const VitConfig& c = card.config;
  Json json = {{"architectures", {architecture(c)}},
               {"model_type", c.distilled ? "deit" : "vit"},
               {"hidden_size", c.width},
               {"num_hidden_layers", c.depth},
               {"num_attention_heads", c.heads},
               {"intermediate_size", c.mlp},
               {"patch_size", c.patch_width > 0 ? Json{c.patch, c.patch_width} : Json(c.patch)},
               {"num_channels", c.channels},
               {"qkv_bias", c.qkv_bias},
               {"layer_norm_eps", c.norm_eps},
               {"hidden_act", activation_name(c.activation, c.gelu, Dialect::kHf)},
               {"attention_probs_dropout_prob", 0.0},
               {"hidden_dropout_prob", 0.0},
               {"dtype", dtype_name(storage)}};
  if (c.pre_logits) {
    json["pooler_output_size"] = c.representation_size();
    json["pooler_act"] = activation_name(c.pre_logits_act, c.pre_logits_gelu, Dialect::kHf);
  }
  if (c.image_height == c.image_width)
    json["image_size"] = c.image_height;
  else
    json["image_size"] = {c.image_height, c.image_width};
  if (c.classes == 0) return json;
  std::vector<std::string> labels = card.labels;
  for (int64_t i = 0; labels.size() < static_cast<size_t>(c.classes); ++i)
    labels.push_back("LABEL_" + std::to_string(i));
  json["id2label"] = label_table(labels);
  Json ids = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) ids[labels[i]] = i;
  json["label2id"] = ids;
  if (card.scores == ScoreKind::kSigmoid) json["problem_type"] = "multi_label_classification";
  return json;
}

Json hf_preprocessor_json(const PreprocessConfig& p) {
  Json json = {{"do_resize", p.mode != ResizeMode::kNone},
               {"do_rescale", true},
               {"do_normalize", true},
               {"rescale_factor", 1.0 / 255},
               {"resample", resample_code(p.interpolation)},
               {"image_mean", p.mean},
               {"image_std", p.std}};
  const Json crop = {{"height", p.height}, {"width", p.width}};
  if (p.mode == ResizeMode::kStretch) {
    json["image_processor_type"] = "ViTImageProcessor";
    json["size"] = crop;
    return json;
  }
  // transformers' plain ViT processor only stretches; DeiT's also crops, CLIP's keeps the image's shape.
  const bool stretches = p.mode == ResizeMode::kStretchCrop;
  const ResizeSides sides = resize_sides(p);
  json["image_processor_type"] = stretches ? "DeiTImageProcessor" : "CLIPImageProcessor";
  json["do_center_crop"] = true;
  json["crop_size"] = crop;
  if (stretches)
    json["size"] = {{"height", sides.height}, {"width", sides.width}};
  else  // the longer side of a crop that is not square: else transformers would pad with black
    json["size"] = {{"shortest_edge", std::max(sides.height, sides.width)}};
  return json;
}

}  // namespace vitrail
