#include "io/dialects/express.h"

#include "base/error.h"
#include "io/cards/hf_processor.h"
#include "io/dialects/bind.h"

namespace vitrail {

namespace {

struct Feature {
  const char* what;
  bool (*present)(const VitConfig&);
  bool timm, hf, torchvision, google;  // can hold it
};
template <Dialect dialect>
bool nameless(const VitConfig& c) {
  return activation_name(c.activation, c.gelu, dialect).empty();
}
constexpr Feature kFeatures[] = {
    {"sincos2d positions", [](const VitConfig& c) { return c.pos == PosKind::kSinCos2d; }, false, false,
     false, true},
    {"a model without a block", [](const VitConfig& c) { return c.depth == 0; }, true, true, false, false},
    {"register tokens", [](const VitConfig& c) { return c.registers > 0; }, true, false, false, false},
    {"register tokens beside a distillation token",
     [](const VitConfig& c) { return c.registers > 0 && c.distilled; }, false, false, false, false},
    {"qk-norm", [](const VitConfig& c) { return c.qk_norm; }, true, false, false, false},
    {"norms within attention or the MLP", [](const VitConfig& c) { return c.attn_norm || c.mlp_norm; }, true,
     false, false, false},
    {"LayerScale", [](const VitConfig& c) { return c.layer_scale; }, true, false, false, false},
    {"a distillation token", [](const VitConfig& c) { return c.distilled; }, true, true, false, false},
    {"max pooling", [](const VitConfig& c) { return c.pool == Pool::kMax || c.pool == Pool::kMeanMax; }, true,
     false, false, false},
    {"tokens without positions", [](const VitConfig& c) { return c.pos == PosKind::kNone; }, true, false,
     false, false},
    {"no norm after the blocks", [](const VitConfig& c) { return c.norm_place == NormPlace::kNone; }, true,
     false, false, false},
    {"a norm within the patch embedding", [](const VitConfig& c) { return c.embed_norm != EmbedNorm::kNone; },
     true, false, false, false},
    {"a norm before the blocks", [](const VitConfig& c) { return c.pre_norm; }, true, false, false, false},
    {"pre_logits with another activation than tanh",
     [](const VitConfig& c) { return c.pre_logits && c.pre_logits_act != ActKind::kTanh; }, false, true,
     false, false},
    {"norms other than layernorm", [](const VitConfig& c) { return c.norm != NormKind::kLayer; }, true, false,
     false, false},
    {"an activation that timm has no name for", nameless<Dialect::kTimm>, false, true, false, false},
    {"an activation that transformers has no name for", nameless<Dialect::kHf>, true, false, false, false},
    {"a pooler with an activation that transformers has no name for",
     [](const VitConfig& c) {
       return c.pre_logits && activation_name(c.pre_logits_act, c.pre_logits_gelu, Dialect::kHf).empty();
     },
     false, false, false, false},
    {"an activation other than GELU", [](const VitConfig& c) { return c.activation != ActKind::kGelu; }, true,
     true, false, false},
    {"patches that are not square", [](const VitConfig& c) { return c.patch_width > 0; }, true, true, false,
     false},
    {"patches that do not cover the image", [](const VitConfig& c) { return !patches_cover(c); }, true, true,
     false, true},
    {"a MAP head", [](const VitConfig& c) { return c.pool == Pool::kMap; }, true, false, false, true},
    {"pooling of refined patches", [](const VitConfig& c) { return c.pool == Pool::kPrr; }, true, false,
     false, false},
    {"average pooling", [](const VitConfig& c) { return c.pool == Pool::kMean; }, true, false, false, true},
    {"average pooling beside a class token",
     [](const VitConfig& c) { return c.pool != Pool::kCls && c.class_token; }, true, false, false, false},
    {"a layernorm after pooling", [](const VitConfig& c) { return c.norm_place == NormPlace::kAfterPool; },
     true, false, false, false},
    {"a class token without a position",
     [](const VitConfig& c) { return c.class_token && !c.pos_for_prefix && c.pos == PosKind::kLearned; },
     true, false, false, true},
    {"q, k and v without biases", [](const VitConfig& c) { return !c.qkv_bias; }, true, true, false, false},
    {"pre_logits before a head", [](const VitConfig& c) { return c.pre_logits && c.classes > 0; }, true,
     false, true, true},
    {"pre_logits beside a distillation token", [](const VitConfig& c) { return c.pre_logits && c.distilled; },
     true, false, false, false},
    {"other than 3 input channels", [](const VitConfig& c) { return c.channels != 3; }, true, true, false,
     true},
    {"an image that is not square", [](const VitConfig& c) { return c.image_height != c.image_width; }, true,
     true, false, true},
};

bool holds(const Feature& feature, Dialect dialect) {
  switch (dialect) {
    case Dialect::kTimm:
      return feature.timm;
    case Dialect::kHf:
      return feature.hf;
    case Dialect::kTorchvision:
      return feature.torchvision;
    case Dialect::kGoogle:
      return feature.google;
  }
  return false;
}

// google's second form is big_vision's: positions for the patches alone.
bool is_second_form(Dialect dialect, const VitConfig& c) {
  if (dialect == Dialect::kHf) return c.distilled;
  return dialect == Dialect::kGoogle && (c.pos_prefix_rows() == 0 || c.pool == Pool::kMap);
}

}  // namespace

bool can_express(Dialect dialect, const VitConfig& config) {
  for (const Feature& feature : kFeatures)
    if (feature.present(config) && !holds(feature, dialect)) return false;
  return true;
}

void refuse_inexpressible(Dialect dialect, const VitConfig& config) {
  for (const Feature& feature : kFeatures)
    if (feature.present(config) && !holds(feature, dialect))
      throw Error(ErrorKind::kUsage,
                  strf("the %s dialect has no place for %s", enum_name(dialect), feature.what),
                  dialect == Dialect::kTimm ? strf("a model without %s", feature.what) : "the timm dialect");
}

WrittenForm written_form(Dialect dialect, const VitConfig& config) {
  const DialectTable& table = dialect_table(dialect);
  const bool second = is_second_form(dialect, config);
  WrittenForm form{&table, second ? Form::kSecond : Form::kFirst, table.written_prefix[second ? 1 : 0]};
  if (dialect == Dialect::kHf && config.classes == 0) form.prefix.clear();  // ViTModel, DeiTModel
  return form;
}

std::vector<std::pair<std::string, const NameRow*>> rows_for(const WrittenForm& form,
                                                             const ParamSpec& param) {
  std::vector<std::pair<std::string, const NameRow*>> rows;
  for (const NameRow& row : form.table->rows) {
    if (row.form != Form::kAny && row.form != form.form) continue;
    if (with_block(row.param, param.block) != param.name) continue;
    const std::string name = row.source[0] == '@' ? form.prefix + (row.source + 1) : row.source;
    rows.emplace_back(with_block(name.c_str(), param.block), &row);
  }
  return rows;
}

}  // namespace vitrail
