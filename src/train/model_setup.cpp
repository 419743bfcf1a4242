#include "train/model_setup.h"

#include "data/preprocess.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "io/dialects/express.h"
#include "models/zoo.h"
#include "train/train_state.h"

namespace vitrail {

namespace {

void apply_given(const ModelSettings& settings, VitConfig& config) {
  const auto copy = [&](const char* name, auto& field, const char*) {
    if (!settings.given.contains(name)) return;
    visit_fields(settings.fields, [&](const char* other, const auto& value, const char*) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(field)>>)
        if (std::string_view(other) == name) field = value;
    });
  };
  visit_fields(config, copy);
}

void apply_given(const ModelSettings& settings, PreprocessConfig& config) {
  visit_preprocess_fields(config, [&](const char* name, auto& field, const char*) {
    if (!settings.preprocess_given.contains(name)) return;
    visit_preprocess_fields(settings.preprocess, [&](const char* other, const auto& value, const char*) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(field)>>)
        if (std::string_view(other) == name) field = value;
    });
  });
}

// Checks the settings that a pretrained model's files fix; only the others may differ.
void require_compatible(const VitConfig& file, const VitConfig& wanted) {
  VitConfig allowed = file;
  allowed.classes = wanted.classes;
  allowed.image_height = wanted.image_height;
  allowed.image_width = wanted.image_width;
  allowed.patch = wanted.patch;
  allowed.arch = wanted.arch;
  allowed.norm_eps = wanted.norm_eps;
  allowed.gelu = wanted.gelu;
  allowed.pos_resize = wanted.pos_resize;
  if (allowed == wanted) return;
  visit_fields(allowed, [&](const char* name, const auto& value, const char*) {
    visit_fields(wanted, [&](const char* other, const auto& asked, const char*) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(asked)>>)
        if (std::string_view(other) == name && value != asked)
          throw Error(ErrorKind::kConfig, strf("model.%s cannot differ from that of model.init", name),
                      "leave it out, or start from scratch without model.init");
    });
  });
}

void open_initial(const ModelSettings& settings, PreparedModel& model) {
  OpenOptions options{.arch = settings.arch};
  if (settings.given.contains("image_height")) options.image_height = settings.fields.image_height;
  if (settings.given.contains("image_width")) options.image_width = settings.fields.image_width;
  if (settings.given.contains("patch")) options.patch = settings.fields.patch;
  if (settings.given.contains("pos_resize")) options.pos_resize = settings.fields.pos_resize;
  model.opened = open_model(settings.init, options);
  model.card = model.opened->card();
  model.notes.push_back("starts from " + settings.init);
  VitConfig wanted = model.card.config;
  apply_given(settings, wanted);
  wanted = without_repeated_extents(wanted);
  wanted.classes = model.card.config.classes;
  require_compatible(model.card.config, wanted);
  model.card.config.norm_eps = wanted.norm_eps;
  model.card.config.gelu = wanted.gelu;
}

void make_fresh(const ModelSettings& settings, PreparedModel& model) {
  VitConfig& config = model.card.config;
  PreprocessConfig& pre = model.card.preprocess;
  if (!settings.arch.empty()) {
    const ZooEntry& entry = find_architecture(settings.arch);
    config = entry.config;
    pre = entry.preprocess;
  }
  apply_given(settings, config);
  validate(config);
  config = without_repeated_extents(config);
  require_patches_cover(config,
                        settings.arch.empty() ? VitConfig() : find_architecture(settings.arch).config);
  if (pre.height == config.image_height && pre.width == config.image_width && !settings.arch.empty()) return;
  pre.height = config.image_height;
  pre.width = config.image_width;
  pre.resize = pre.resize_longer = pre.pad_rows = pre.pad_columns = 0;
  pre.crop_pct = 0;
  const auto channels = static_cast<size_t>(config.channels);
  pre.mean.assign(channels, 0.5);
  pre.std.assign(channels, 0.5);
}

// Completes the settings as a model's own files would have them: one number for all channels, a share for a
// side.
void complete(const ModelSettings& settings, const VitConfig& config, PreprocessConfig& pre) {
  const auto channels = static_cast<size_t>(config.channels);
  for (std::vector<double>* values : {&pre.mean, &pre.std})
    if (values->size() == 1) values->assign(channels, values->front());
  const auto given = [&](const char* name) { return settings.preprocess_given.contains(name); };
  if (given("resize") && !given("crop_pct")) pre.crop_pct = 0;
  const ResizeSides crop = crop_sides(pre);
  if (given("crop_pct") && !given("resize") && pre.crop_pct > 0)
    pre.resize = side_before_crop(std::min(crop.height, crop.width), pre.crop_pct);
}

// Checks everything that saving the model, and making images for it, will require, before training starts.
void require_storable(const ModelCard& card) {
  validate(card.config);
  validate(card.preprocess, card.config);
  require_possible(card.preprocess);
  const VitConfig stored = stored_config(card.config);
  validate(stored);
  refuse_inexpressible(folder_dialect(stored), stored);
}

void fit_head(PreparedModel& model, const std::vector<std::string>& classes) {
  ModelCard& card = model.card;
  const auto count = static_cast<int64_t>(classes.size());
  const bool labels_differ = !card.labels.empty() && card.labels != classes;
  if (model.opened && (card.config.classes != count || labels_differ)) {
    model.new_head = true;
    model.notes.push_back(
        card.config.classes != count
            ? strf("head replaced: %lld classes of the file, %lld of the data",
                   static_cast<long long>(card.config.classes), static_cast<long long>(count))
            : std::string("head replaced: the file's classes have other names than the data's"));
  }
  card.config.classes = count;
  card.labels = classes;
}

}  // namespace

Json card_facts(const ModelCard& card) {
  Json model = to_json(card.config);
  for (const char* key : {"arch", "classes"}) model.erase(key);
  return {{"model", model}, {"preprocess", to_json(card.preprocess)}};
}

int64_t heads_of(const ModelSettings& settings) {
  if (settings.given.contains("heads") || (settings.init.empty() && settings.arch.empty()))
    return settings.fields.heads;
  try {
    return settings.init.empty() ? find_architecture(settings.arch).config.heads
                                 : open_model(settings.init, {.arch = settings.arch})->card().config.heads;
  } catch (const Error&) {
    return 0;  // what is wrong with it is told when the model is prepared
  }
}

std::unique_ptr<PreparedModel> prepare_model(const ModelSettings& settings, uint64_t seed,
                                             const std::vector<std::string>& classes, ScoreKind scores,
                                             const LoraConfig& lora) {
  auto model = std::make_unique<PreparedModel>();
  if (settings.given.contains("classes"))
    VT_REQUIRE(settings.fields.classes == static_cast<int64_t>(classes.size()), ErrorKind::kConfig,
               "model.classes is %lld; the data has %zu classes",
               static_cast<long long>(settings.fields.classes), classes.size());
  if (settings.init.empty())
    make_fresh(settings, *model);
  else
    open_initial(settings, *model);
  apply_given(settings, model->card.preprocess);
  fit_head(*model, classes);
  model->card.scores = scores;
  complete(settings, model->card.config, model->card.preprocess);
  require_storable(model->card);
  model->card.path.clear();
  model->style = settings.style;
  model->seed = seed;
  model->lora = lora;
  return model;
}

void PreparedModel::fill(const ParamSpec& spec, std::span<float> target) const {
  const bool adapter = spec.role == ParamRole::kLoraA || spec.role == ParamRole::kLoraB;
  const bool head = new_head && spec.part == ParamPart::kHead;
  if (!opened || adapter || head) return init_param(card.config, spec, style, seed, target);
  opened->read_param(spec, target);
}

ParamFiller PreparedModel::filler() const {
  std::map<std::string, ParamSpec> specs;
  for (ParamSpec& spec : step_params(card.config, lora)) specs.emplace(spec.name, std::move(spec));
  return
      [this, specs = std::move(specs)](const std::string& name, const Shape& shape, std::span<float> target) {
        const auto known = specs.find(name);
        VT_CHECK(known != specs.end(), "%s is no parameter of this model", name.c_str());
        ParamSpec spec = known->second;
        spec.shape = shape;
        fill(spec, target);
      };
}

std::vector<ParamSpec> step_params(const VitConfig& config, const LoraConfig& lora) {
  std::vector<ParamSpec> specs = vit_params(config);
  for (ParamSpec& spec : lora_params(config, lora)) specs.push_back(std::move(spec));
  return specs;
}

}  // namespace vitrail
