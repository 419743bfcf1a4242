// Which settings of a run the file of its model fixes, and which it takes.
#include "train/model_setup.h"

#include <gtest/gtest.h>

#include <random>

#include "io/config_json.h"
#include "io/model_files.h"
#include "train/helpers/tiny_run.h"
#include "train/train_state.h"

namespace vitrail::testing {
namespace {

TEST(ModelOfARun, ItsFileFixesTheShape) {
  const WorkFolder work;
  train(tiny_config(1), work / "base");
  const auto prepared = [&](const char* name, const std::function<void(VitConfig&)>& change) {
    TrainConfig config = tiny_config(1);
    config.model.given.clear();
    config.model.init = work / "base/best";
    set_model(config, name, change);
    try {
      const auto model = prepare_model(config.model, 0, {"0", "1", "2", "3"}, ScoreKind::kSoftmax);
      EXPECT_EQ(model->card.config.norm_eps, config.model.fields.norm_eps) << name;
      return std::string("taken");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      return error.message();
    }
  };
  const std::pair<const char*, std::function<void(VitConfig&)>> fixed[] = {
      {"width", [](VitConfig& m) { m.width = 32; }},
      {"depth", [](VitConfig& m) { m.depth = 3; }},
      {"heads", [](VitConfig& m) { m.heads = 4; }},
      {"mlp", [](VitConfig& m) { m.mlp = 64; }},
      {"channels", [](VitConfig& m) { m.channels = 1; }},
      {"qkv_bias", [](VitConfig& m) { m.qkv_bias = false; }}};
  for (const auto& [name, change] : fixed)
    EXPECT_EQ(prepared(name, change), strf("model.%s cannot differ from that of model.init", name));
  const std::pair<const char*, std::function<void(VitConfig&)>> free[] = {
      {"norm_eps", [](VitConfig& m) { m.norm_eps = 0.5; }},
      {"image_height", [](VitConfig& m) { m.image_height = 16; }},
      {"image_width", [](VitConfig& m) { m.image_width = 16; }},
      {"patch", [](VitConfig& m) { m.patch = 2; }}};
  for (const auto& [name, change] : free) EXPECT_EQ(prepared(name, change), "taken") << name;
}

TEST(ModelOfARun, PositionsOfItsFileAreResizedByTheRuleThatTheConfigNames) {
  const WorkFolder work;
  train(tiny_config(1), work / "base");
  const auto positions = [&](std::optional<PosResize> rule) {
    TrainConfig config = tiny_config(1);
    config.model.given.clear();
    config.model.init = work / "base/best";
    set_image(config, 16);
    if (rule) set_model(config, "pos_resize", [&](VitConfig& m) { m.pos_resize = *rule; });
    const auto model = prepare_model(config.model, 0, {"0", "1", "2", "3"}, ScoreKind::kSoftmax);
    EXPECT_EQ(model->card.config.pos_resize, rule.value_or(PosResize::kTimm));
    std::vector<float> table;
    for (const ParamSpec& spec : vit_params(model->card.config)) {
      if (spec.name != "pos_embed") continue;
      table.resize(static_cast<size_t>(spec.shape.elems()));
      model->fill(spec, table);
    }
    return table;
  };
  EXPECT_EQ(positions({}), positions(PosResize::kTimm));
  EXPECT_NE(positions({}), positions(PosResize::kHf));
  EXPECT_NE(positions({}), positions(PosResize::kJax));
}

// Changes about one in ten of a model's switches and kinds, and of the sizes that may be 0.
struct DrawModel {
  std::mt19937& draws;
  ModelSettings& settings;

  int64_t drawn_size(std::string_view which, int64_t usual) {
    const auto drawn = static_cast<int64_t>(draws() % 3 * 2);
    if (which == "representation") return 14 + drawn;
    return which == "registers" || which == "patch_width" ? drawn : usual;
  }

  template <typename T>
  void operator()(const char* name, T& field, const char*) {
    if (draws() % 10 != 0) return;
    const std::string_view which = name;
    if constexpr (std::is_same_v<T, bool>)
      field = !field;
    else if constexpr (std::is_enum_v<T>)
      field = static_cast<T>(draws() % std::size(EnumNames<T>::names));
    else if constexpr (std::is_same_v<T, int64_t>)
      field = drawn_size(which, field);
    settings.given.insert(name);
  }
};

// Whatever model a run accepts, its folders are read again as just that model.
TEST(ModelOfARun, IsReadAgainFromTheFolderThatARunWrites) {
  const WorkFolder work;
  std::mt19937 draws(20261119);
  int stored = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    TrainConfig config = tiny_config(1);
    visit_fields(config.model.fields, DrawModel{draws, config.model});
    std::unique_ptr<PreparedModel> model;
    try {
      model = prepare_model(config.model, 0, {"0", "1", "2", "3"}, ScoreKind::kSoftmax);
    } catch (const Error&) {
      ++refused;
      continue;
    }
    ModelCard card = model->card;
    card.config = stored_config(card.config);
    const std::string settings = to_json(card.config).dump();
    write_model(work / "model", card,
                {.dialect = folder_dialect(card.config), .overwrite = true, .folder = true},
                [](const ParamSpec&, std::span<float> values) { std::ranges::fill(values, 0.5f); });
    try {
      EXPECT_EQ(to_json(open_model(work / "model")->card().config).dump(), settings);
    } catch (const Error& error) {
      ADD_FAILURE() << error.message() << " of " << settings;
    }
    ++stored;
  }
  EXPECT_GT(stored, 100);
  EXPECT_GT(refused, 20);
}

TEST(ModelOfARun, OtherClassesGiveADistilledModelTwoNewHeads) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1);
  set_model(config, "distilled", [](VitConfig& m) { m.distilled = true; });
  ModelCard card = prepare_model(config.model, 0, {"0", "1", "2", "3"}, ScoreKind::kSoftmax)->card;
  card.config = stored_config(card.config);
  write_model(work / "model", card,
              {.dialect = folder_dialect(card.config), .overwrite = true, .folder = true},
              [](const ParamSpec&, std::span<float> values) { std::ranges::fill(values, 0.5f); });
  ModelSettings settings;
  settings.init = work / "model";
  const auto model = prepare_model(settings, 0, {"0", "1", "2"}, ScoreKind::kSoftmax);
  int heads = 0;
  for (const ParamSpec& spec : vit_params(model->card.config)) {
    std::vector<float> values(static_cast<size_t>(spec.shape.elems()));
    model->fill(spec, values);
    const bool head = spec.name.starts_with("head");
    EXPECT_EQ(std::ranges::count(values, 0.5f) == std::ssize(values), !head) << spec.name;
    heads += head;
  }
  EXPECT_EQ(heads, 4) << "a weight and a bias of each";
}

TEST(ModelOfARun, ExtentsThatRepeatTheirDefaultAreAsIfLeftOut) {
  TrainConfig config = tiny_config(1);
  set_model(config, "patch_width", [](VitConfig& m) { m.patch_width = m.patch; });
  set_model(config, "pre_logits", [](VitConfig& m) { m.pre_logits = true; });
  set_model(config, "representation", [](VitConfig& m) { m.representation = m.width; });
  const auto model = prepare_model(config.model, 0, {"0", "1", "2", "3"}, ScoreKind::kSoftmax);
  EXPECT_EQ(model->card.config.patch_width, 0);
  EXPECT_EQ(model->card.config.representation, 0);
}

}  // namespace
}  // namespace vitrail::testing
