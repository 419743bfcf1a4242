// Reads the arguments of timm's VisionTransformer that a config.json holds as model_args.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/hf_processor.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

constexpr const char* kArgsFile = "config.json";

struct ArgRow {
  const char* key;
  const char* field;
};
// Constructor arguments that set one field each.
constexpr ArgRow kIntArgs[] = {{"embed_dim", "width"},     {"depth", "depth"},
                               {"num_heads", "heads"},     {"in_chans", "channels"},
                               {"num_classes", "classes"}, {"reg_tokens", "registers"}};
constexpr ArgRow kBoolArgs[] = {{"class_token", "class_token"},
                                {"qkv_bias", "qkv_bias"},
                                {"qk_norm", "qk_norm"},
                                {"pre_norm", "pre_norm"},
                                {"scale_attn_norm", "attn_norm"},
                                {"scale_mlp_norm", "mlp_norm"},
                                {"pool_include_prefix", "pool_prefix"}};
constexpr ArgRow kPools[] = {{"token", "cls"}, {"avg", "mean"},        {"map", "map"},
                             {"max", "max"},   {"avgmax", "mean_max"}, {"prr", "prr"}};
constexpr ArgRow kPositions[] = {{"learn", "learned"}, {"none", "none"}, {"", "none"}};
constexpr ArgRow kNorms[] = {{"layernorm", "layer"},   {"layernormfp32", "layer"},
                             {"rmsnorm", "rms"},       {"rmsnormfp32", "rms"},
                             {"simplenorm", "simple"}, {"simplenormfp32", "simple"}};
// What timm's norms have that are given by name; only architectures bind another epsilon.
constexpr double kNamedNormEps = 1e-6;
// Arguments without effect on a trained model's output, or determined by its tensors.
constexpr const char* kHarmless[] = {
    "drop_rate",        "pos_drop_rate",   "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate",   "drop_path_rate",  "weight_init",     "fix_init",
    "dynamic_img_size", "strict_img_size", "dynamic_img_pad", "pretrained",
    "features_only",    "fc_norm",         "proj_bias",       "pretrained_strict"};
// Arguments that are supported only when they are off.
constexpr const char* kOnlyOff[] = {"use_naflex"};

std::string named(const Json& value, const char* key, std::span<const ArgRow> rows) {
  const std::string name = json_string(value, kArgsFile, key);
  std::string known;
  for (const ArgRow& row : rows) {
    if (name == row.key) return row.field;
    known += (known.empty() ? "" : ", ") + std::string(row.key);
  }
  throw Error(ErrorKind::kData,
              strf("config.json: %s is %s; supported are %s", key, quoted(name).c_str(), known.c_str()));
}

// Reads 224 or [224, 160].
ImageSize read_sides(const Json& value, const char* key) {
  const bool pair = value.is_array() && value.size() == 2;
  const ImageSize sides{json_int(pair ? value[0] : value, kArgsFile, key),
                        json_int(pair ? value[1] : value, kArgsFile, key)};
  for (const int64_t side : {sides.height, sides.width})
    VT_REQUIRE(side > 0 && side < 1 << 20, ErrorKind::kConfig, "config.json: %s has a side of %lld", key,
               static_cast<long long>(side));
  return sides;
}

bool read_plain_arg(const std::string& key, const Json& value, StatedConfig* stated) {
  for (const ArgRow& row : kIntArgs)
    if (key == row.key) {
      stated->model[row.field] = json_int(value, kArgsFile, key);
      return true;
    }
  for (const ArgRow& row : kBoolArgs)
    if (key == row.key) {
      stated->model[row.field] = timm_truth(value, key);
      return true;
    }
  if (std::find(std::begin(kOnlyOff), std::end(kOnlyOff), key) != std::end(kOnlyOff))
    return !timm_truth(value, key);
  return std::find(std::begin(kHarmless), std::end(kHarmless), key) != std::end(kHarmless);
}

void read_mlp(const Json& args, StatedConfig* stated) {
  const int64_t width = stated->model.at("width");
  if (const Json* ratio = json_find(args, "mlp_ratio")) {
    const double mlp = static_cast<double>(width) * json_number(*ratio, kArgsFile, "mlp_ratio");
    VT_REQUIRE(mlp >= 1 && mlp < 1e9, ErrorKind::kConfig, "config.json: mlp_ratio gives an MLP of %g", mlp);
    stated->model["mlp"] = static_cast<int64_t>(mlp);
  } else if (json_find(args, "embed_dim")) {
    // A share of the width that the architecture alone knows; the tensors tell it.
    stated->model.erase("mlp");
  }
}

// Returns whether an argument names a layer: an empty text means timm's usual one, whatever the architecture.
bool is_named(const Json& value) {
  return !value.is_string() || !value.get_ref<const std::string&>().empty();
}

// timm looks norms up in lower case and without underscores, and takes its layernorm for an empty name.
std::string norm_of(const Json& value, const char* key) {
  std::string name = lowercase(json_string(value, kArgsFile, key));
  std::erase(name, '_');
  return named(name.empty() ? "layernorm" : name, key, kNorms);
}

// Reads arguments whose effect depends on more than their own value.
bool read_special_arg(const std::string& key, const Json& value, StatedConfig* stated) {
  if (key == "patch_size") {
    const ImageSize sides = read_sides(value, "model_args.patch_size");
    stated->model["patch"] = sides.height;
    stated->model["patch_width"] = sides.width == sides.height ? 0 : sides.width;
  } else if (key == "img_size") {
    const ImageSize sides = read_sides(value, "model_args.img_size");
    stated->model["image_height"] = sides.height;
    stated->model["image_width"] = sides.width;
  } else if (key == "init_values") {
    stated->model["layer_scale"] = timm_truth(value, key);
  } else if (key == "no_embed_class") {
    stated->model["pos_for_prefix"] = !timm_truth(value, key);
  } else if (key == "global_pool") {
    set_timm_pool(value, stated);
  } else if (key == "pos_embed") {
    stated->model["pos"] = named(value, "pos_embed", kPositions);
  } else if (key == "final_norm") {
    stated->model.erase("norm_place");
    if (!timm_truth(value, key)) stated->model["norm_place"] = enum_name(NormPlace::kNone);
  } else if (key == "norm_layer") {
    stated->model["norm"] = norm_of(value, "norm_layer");
    stated->model["norm_eps"] = kNamedNormEps;
  } else if (key == "act_layer") {
    set_activation(is_named(value) ? value : Json("gelu"), "act_layer", Dialect::kTimm, stated);
  } else if (key == "embed_norm_layer") {
    if (is_named(value)) stated->model["embed_norm"] = norm_of(value, "embed_norm_layer");
  } else if (key == "attn_layer") {
    return !is_named(value) || value == "attn";
  } else {
    return key == "mlp_ratio";
  }
  return true;
}

// The norm that is left out, stands before pooling or behind it, where fc_norm says so itself: null is behind
// pooling of several tokens. Without a word of it the tensors decide.
void settle_norm_place(const Json& args, StatedConfig* stated) {
  const auto at = args.find("fc_norm");
  if (at == args.end() || stated->model.contains("norm_place")) return;
  const std::string pool = stated->model.at("pool");
  const bool several = pool == "mean" || pool == "max" || pool == "mean_max";
  const bool after = at->is_null() ? several : timm_truth(*at, "fc_norm");
  stated->model["norm_place"] = enum_name(after ? NormPlace::kAfterPool : NormPlace::kBeforePool);
}

// timm's distilled ViT makes a norm after pooling and registers but uses neither; positions it always has.
void settle_distilled(StatedConfig* stated) {
  Json& model = stated->model;
  if (!model.at("distilled").get<bool>()) return;
  model["registers"] = 0;
  model["pos"] = enum_name(PosKind::kLearned);
  if (model.value("norm_place", "") == enum_name(NormPlace::kAfterPool))
    model["norm_place"] = enum_name(NormPlace::kNone);
}

// Returns what Python takes None for, in the place of what the architecture says: false, or timm's usual
// layer. Where it could take it for nothing, null is as if it were not there.
Json instead_of_null(const std::string& key) {
  for (const char* layer : {"norm_layer", "act_layer", "embed_norm_layer", "pos_embed"})
    if (key == layer) return "";
  for (const char* no : {"init_values", "no_embed_class", "final_norm"})
    if (key == no) return false;
  const auto named = [&](const ArgRow& row) { return key == row.key; };
  return std::any_of(std::begin(kBoolArgs), std::end(kBoolArgs), named) ? Json(false) : Json();
}

}  // namespace

bool timm_truth(const Json& value, const std::string& key) {
  return value.is_number() ? json_number(value, kArgsFile, key) != 0 : json_bool(value, kArgsFile, key);
}

void set_timm_pool(const Json& value, StatedConfig* stated) {
  stated->model["pool"] = named(value, "global_pool", kPools);
}

void read_timm_args(const Json& args, StatedConfig* stated) {
  if (!args.is_object()) wrong_type(kArgsFile, "model_args", args, "an object");
  for (const auto& [key, said] : args.items()) {
    const Json value = said.is_null() ? instead_of_null(key) : said;
    if (value.is_null()) continue;
    VT_REQUIRE(read_special_arg(key, value, stated) || read_plain_arg(key, value, stated), ErrorKind::kData,
               "config.json: model_args.%s %s is not understood and may change the result", key.c_str(),
               value.dump().c_str());
  }
  read_mlp(args, stated);
  settle_norm_place(args, stated);
  settle_distilled(stated);
}

}  // namespace vitrail
