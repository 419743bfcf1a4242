// Starting from a trained model: heads, positions and patches that have to change, parameters that must not,
// adapters; and what `best` holds in the end.
#include <gtest/gtest.h>

#include <cmath>

#include "train/helpers/answers.h"
#include "train/helpers/trained_model.h"

namespace vitrail::testing {
namespace {

TrainConfig tuning(int64_t steps) {
  TrainConfig config = tiny_config(steps);
  config.model.given.clear();
  config.model.init = trained_model();
  config.optim.lr = 0.001;
  return config;
}

std::vector<std::string> changed_params(const std::string& run) {
  const auto before = params_of(trained_model());
  const Tensors after = state_of(run);
  std::vector<std::string> names;
  for (const auto& [name, values] : before)
    if (floats_of(after, name) != values) names.push_back(name);
  return names;
}

TEST(FineTune, GoesOnWhereTheModelWas) {
  const WorkFolder work;
  const Ran ran = train(tuning(2), work / "run");
  EXPECT_TRUE(ran.noted("starts from"));
  EXPECT_FALSE(ran.noted("head replaced"));
  EXPECT_LT(ran.steps.front().loss, 0.3);
  EXPECT_EQ(changed_params(work / "run").size(), params_of(trained_model()).size());
}

TEST(FineTune, OtherClassesGetANewHead) {
  const WorkFolder work;
  TrainConfig config = tuning(1);
  config.data.train = "synthetic:3x8x8x7x56";
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.noted("head replaced: 4 classes of the file, 7 of the data"));
  EXPECT_NEAR(ran.steps.front().loss, std::log(7.0), 0.2);
  EXPECT_EQ(open_model(work / "run/best")->card().config.classes, 7);
}

TEST(FineTune, AsManyClassesOfOtherNamesGetANewHead) {
  const WorkFolder work;
  TrainConfig config = tuning(1);
  config.data.class_names = {"ape", "bee", "cow", "dog"};
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.noted("head replaced: the file's classes have other names than the data's"));
  EXPECT_NEAR(ran.steps.front().loss, std::log(4.0), 0.2);
  EXPECT_EQ(open_model(work / "run/best")->card().labels, config.data.class_names);
}

struct Resize {
  const char* name;
  int64_t image, patch;  // 0: as it was
};
class Resized : public ::testing::TestWithParam<Resize> {};

// All but the head is frozen: the model must be the file's, fitted, from the first step to the last.
TEST_P(Resized, StartsFromTheFileFitted) {
  const auto [name, image, patch] = GetParam();
  const WorkFolder work;
  TrainConfig config = tuning(2);
  if (image) set_image(config, image), config.data.train = "synthetic:3x16x16x4x40";
  if (patch) set_patch(config, patch);
  config.params.freeze = {"*", "!head.*"};
  const Ran ran = train(config, work / "run");
  const auto wanted =
      params_of(trained_model(), {.arch = {}, .image_height = image, .image_width = image, .patch = patch});
  const auto found = params_of(work / "run/best");
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [param, values] : wanted)
    EXPECT_EQ(found.at(param) == values, !param.starts_with("head.")) << param;
  const VitConfig written = open_model(work / "run/best")->card().config;
  EXPECT_EQ(written.image_height, image ? image : 8);
  EXPECT_EQ(written.patch, patch ? patch : 4);
  EXPECT_LT(ran.steps.front().loss, std::log(4.0)) << "still knows something";
}

INSTANTIATE_TEST_SUITE_P(Sizes, Resized,
                         ::testing::Values(Resize{"image", 16, 0}, Resize{"patch", 0, 2},
                                           Resize{"both", 16, 8}),
                         [](const auto& test) { return test.param.name; });

TEST(FineTune, AFileOfAnotherShapeIsRefused) {
  const WorkFolder work;
  TrainConfig config = tuning(1);
  set_model(config, "width", [](VitConfig& m) { m.width = 32; });
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find("model.width"), std::string::npos) << error.what();
}

TEST(FineTune, OnlyWhatShallLearnChanges) {
  struct Case {
    const char* name;
    std::function<void(TrainConfig&)> make;
    std::function<bool(const std::string&)> learns;
  };
  const Case cases[] = {
      {"freeze",
       [](TrainConfig& c) {
         c.params.freeze = {"blocks.0.*", "pos_embed", "*.bias"};
       },
       [](const std::string& name) {
         return !name.starts_with("blocks.0.") && name != "pos_embed" && !name.ends_with(".bias");
       }},
      {"probe", [](TrainConfig& c) { c.params.linear_probe = true; },
       [](const std::string& name) { return name.starts_with("head."); }},
      {"lora", [](TrainConfig& c) { c.lora.rank = 2; },
       [](const std::string& name) { return name.starts_with("head."); }},
      {"lora and positions",
       [](TrainConfig& c) {
         c.lora.rank = 2, c.params.freeze = {"head.*", "!pos_embed"};
       },
       [](const std::string& name) { return name == "pos_embed"; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const WorkFolder work;
    TrainConfig config = tuning(3);
    c.make(config);
    config.optim.weight_decay = 0.1;
    const Ran ran = train(config, work / "run");
    EXPECT_TRUE(ran.noted("trains "));
    std::vector<std::string> wanted;
    for (const auto& [name, values] : params_of(trained_model()))
      if (c.learns(name)) wanted.push_back(name);
    EXPECT_EQ(changed_params(work / "run"), wanted);
  }
}

// One update of plain SGD is the gradient times the layer's rate.
TEST(FineTune, LayersLearnAtTheirOwnRates) {
  const WorkFolder work;
  TrainConfig config = tuning(1);
  config.optim.name = "sgd";
  config.optim.momentum = 0;
  config.optim.lr = 0.5;
  train(config, work / "even");
  config.params.layer_decay = 0.25;
  train(config, work / "decayed");
  const auto start = params_of(trained_model());
  const Tensors even = state_of(work / "even"), decayed = state_of(work / "decayed");
  const auto distance = [&](const Tensors& to, const std::string& name) {
    const std::vector<float> values = floats_of(to, name), &from = start.at(name);
    double total = 0;
    for (size_t i = 0; i < values.size(); ++i)
      total += std::pow(static_cast<double>(values[i]) - static_cast<double>(from[i]), 2);
    return std::sqrt(total);
  };
  struct Layer {
    const char* param;
    double rate;
  };
  for (const auto& [param, rate] : {Layer{"patch_embed.proj.weight", 1.0 / 64},
                                    {"blocks.0.mlp.fc1.weight", 1.0 / 16},
                                    {"blocks.1.mlp.fc1.weight", 1.0 / 4},
                                    {"head.weight", 1}}) {
    ASSERT_GT(distance(even, param), 1e-5) << param;
    EXPECT_NEAR(distance(decayed, param) / distance(even, param), rate, 0.01 * rate) << param;
  }
}

TEST(FineTune, MergedAdaptersAnswerAsTheTrainerDid) {
  const WorkFolder work;
  TrainConfig config = tuning(30);
  config.data.train = "synthetic:3x8x8x5x100";
  config.lora = {.rank = 3, .alpha = 8, .attention = true, .mlp = true};
  config.optim.lr = 0.01;
  const Ran ran = train(config, work / "merged");
  const auto val = open_dataset(config.data.train, Part::kVal);
  const EvalResult saved = evaluate_folder(work / "merged/best", *val, 4);
  EXPECT_NEAR(saved.loss, ran.outcome.last_eval->loss, 1e-5 * saved.loss);
  EXPECT_EQ(saved.top1(), ran.outcome.last_eval->top1());
  EXPECT_FALSE(std::filesystem::exists(work / "merged/best/adapters.safetensors"));
  const std::string weight = "blocks.1.mlp.fc2.weight";
  EXPECT_NE(params_of(work / "merged/best").at(weight), params_of(trained_model()).at(weight));

  config.train.save_adapters = true;
  train(config, work / "apart");
  const auto stored = open_tensors(work / "apart/best/model.safetensors");
  const auto untouched = open_tensors(trained_model() + "/model.safetensors");
  const std::string as_stored = "vit.encoder.layer.1.output.dense.weight";
  EXPECT_EQ(tensors_of(*stored).at(as_stored), tensors_of(*untouched).at(as_stored));
  EXPECT_EQ(params_of(work / "apart/best").at(weight), params_of(work / "merged/best").at(weight));
  const auto adapters = open_tensors(work / "apart/best/adapters.safetensors");
  EXPECT_EQ(adapters->tensors().size(), 2u * 4u * 2u);  // two blocks, four GEMMs, A and B
  const Tensors state = state_of(work / "apart");
  for (const auto& [name, bytes] : tensors_of(*adapters)) EXPECT_EQ(bytes, state.at(name)) << name;
}

// The average of the adapters is merged where the average is what was evaluated, not the adapters of the last
// step.
TEST(FineTune, MergedAdaptersOfAnAverageAnswerAsTheAverageDid) {
  const WorkFolder work;
  TrainConfig config = tuning(8);
  config.lora = {.rank = 2, .alpha = 8, .attention = true, .mlp = true};
  config.optim.lr = 0.02;
  config.optim.ema_decay = 0.6;
  const Ran ran = train(config, work / "run");
  ASSERT_EQ(ran.evals.size(), 2u);
  EXPECT_NE(ran.evals[0].loss, ran.evals[1].loss) << "the weights and their average differ";
  const auto val = open_dataset(config.data.train, Part::kVal);
  const EvalResult saved = evaluate_folder(work / "run/best", *val, 4);
  EXPECT_NEAR(saved.loss, ran.outcome.last_eval->loss, 1e-5 * saved.loss);
}

// The last batch is a partial one; with an average, it is the average that is evaluated and kept.
TEST(FineTune, BestAnswersAsTheTrainersEvaluation) {
  for (double ema : {0.0, 0.8}) {
    const WorkFolder work;
    TrainConfig config = tiny_config(20);
    config.data.train = "synthetic:3x8x8x4x95";
    config.train.eval_batch = 8;
    config.optim.ema_decay = ema;
    const Ran ran = train(config, work / "run");
    const auto val = open_dataset(config.data.train, Part::kVal);
    const EvalResult saved = evaluate_folder(work / "run/best", *val, 5);
    EXPECT_EQ(saved.count, 19);
    EXPECT_EQ(ran.outcome.last_eval->count, 19);
    EXPECT_EQ(saved.top1(), ran.outcome.best);
    EXPECT_NEAR(saved.loss, ran.outcome.last_eval->loss, 1e-6);
    EXPECT_EQ(ran.evals.size(), ema > 0 ? 2u : 1u);
    EXPECT_EQ(ran.evals.back().weights, ema > 0 ? "ema" : "model");
  }
}

}  // namespace
}  // namespace vitrail::testing
