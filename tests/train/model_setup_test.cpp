// Which settings of a run the file of its model fixes, and which it takes.
#include "train/model_setup.h"

#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"

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

}  // namespace
}  // namespace vitrail::testing
