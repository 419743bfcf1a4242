// The page that a run leaves: its verdict, its figures, and memory that was held as it was planned; what a
// resumed run says of what has changed; which settings a model's file fixes.
#include <gtest/gtest.h>

#include "train/helpers/answers.h"
#include "train/model_setup.h"

namespace vitrail::testing {
namespace {

constexpr auto kNone = std::string::npos;

std::string page_of(const std::string& folder) {
  return read_file(RunFiles(folder).report(), 1 << 24);
}
std::string percent(double share) {
  return strf("%.2f %%", 100 * share);
}
size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != kNone; at = text.find(part, at + 1)) ++count;
  return count;
}
std::string tile(const std::string& value, const std::string& label) {
  return "<b>" + value + "</b><span>" + label + "</span>";
}

TEST(RunReport, SaysHowTheRunEnded) {
  const WorkFolder work;
  TrainConfig config = tiny_config(4);
  config.train.eval_every = 1;
  const Ran ran = train(config, work / "a run");
  int64_t best_step = 0;
  for (const EvalStatus& eval : ran.evals)
    if (eval.best) best_step = eval.step;
  const std::string page = page_of(work / "a run");
  const EvalStatus& last = ran.evals.back();
  EXPECT_NE(page.find("<title>a run"), kNone) << "its folder's name";
  EXPECT_NE(page.find(strf("%s top-1 on %lld images after 4 steps; best %s at step %lld",
                           percent(*last.top1).c_str(), static_cast<long long>(last.count),
                           percent(ran.outcome.best).c_str(), static_cast<long long>(best_step))),
            kNone);
  const int64_t params = count_params(set_up(config).step.model);
  EXPECT_NE(page.find(tile("4 of 4", "steps")), kNone);
  EXPECT_NE(page.find(tile(strf("%lld,%03lld", static_cast<long long>(params / 1000),
                                static_cast<long long>(params % 1000)),
                           "parameters")),
            kNone);
  EXPECT_NE(page.find(tile("all steps done", "ended")), kNone);
  EXPECT_NE(page.find("test"), kNone) << "what made it";
}

TEST(RunReport, OfARunThatWasStopped) {
  const WorkFolder work;
  train(tiny_config(5), work / "run", {.stop_after = 2});
  const std::string page = page_of(work / "run");
  EXPECT_NE(page.find(tile("2 of 5", "steps")), kNone);
  EXPECT_NE(page.find(tile("stopped on request", "ended")), kNone);
  EXPECT_NE(page.find("2 steps done, nothing to evaluate on"), kNone) << "nothing was evaluated";
}

// Every row of the table, and the total, was held to the byte.
TEST(RunReport, MemoryIsThatOfThePlan) {
  const WorkFolder work;
  const auto rows = [&](const std::string& name, const TrainConfig& config) {
    Ran ran;
    train_into(ran, config, work / name);
    const std::string page = page_of(work / name);
    const size_t from = page.find("<section id=\"memory\"");
    std::string memory = page.substr(from, page.find("</section>", from) - from);
    EXPECT_EQ(count_of(memory, ">none<"), count_of(memory, "<tr>") - 1) << memory;
    return memory;
  };
  const std::string plain = rows("plain", tiny_config(1));
  for (const char* row :
       {"parameters", "gradients", "optimizer", "activations and scratch", "batches being loaded"})
    EXPECT_EQ(count_of(plain, std::string(">") + row), 1u) << row << plain;
  TrainConfig config = full_config(2);
  rows("teacher", config);
  config.distill = {DistillKind::kSoft, work / "teacher/best", 0.5, 2};
  rows("student", config);
  config = tiny_config(1);
  config.mesh.offload = Offload::kOptimizer, config.train.dtype = ComputeType::kBF16;
  rows("offload", config);
}

TEST(ResumedRun, SaysWhatHasChanged) {
  const WorkFolder work;
  train(tiny_config(2), work / "run");
  TrainConfig config = tiny_config(4);
  config.optim.lr = 0.25;
  const Ran told = train(config, work / "run", {.resume = ResumeMode::kNewest});
  for (const char* part : {"changed since the checkpoint: config.train.steps",
                           "changed since the checkpoint: "
                           "config.optim.lr"})
    EXPECT_TRUE(told.noted(part)) << part;
  EXPECT_FALSE(told.noted("other validation data"));
  config.train.seed = 7, config.optim.momentum = 0.5;
  Ran ran;
  const Error error = train_error(ran, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_TRUE(error.message().starts_with("the checkpoint was made by another run:\n  ")) << error.message();
  EXPECT_NE(error.message().find("config.train.seed"), kNone) << error.message();
  EXPECT_NE(error.message().find("config.optim.momentum"), kNone) << error.message();
  EXPECT_EQ(error.hint(), "resume with the config the run was started with, or train into another folder");
  const Error fresh = train_error(ran, tiny_config(1), work / "run");
  EXPECT_EQ(fresh.kind(), ErrorKind::kUsage);
  EXPECT_EQ(fresh.hint(), "--resume goes on with it; --out names another folder");
  config = tiny_config(5);
  config.data.train = "synthetic:3x8x8x4x44";
  const Error data = train_error(ran, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(data.message().starts_with("the data is not what the run has learned from:")) << data.message();
  EXPECT_NE(data.message().find("the training data has other names or labels"), kNone) << data.message();
  EXPECT_EQ(data.hint(), "bring the data back as it was, or train into another folder with --out");
}

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

TEST(ModelOfARun, ATeacherSeesTheSameImages) {
  const WorkFolder work;
  train(tiny_config(1), work / "teacher");
  TrainConfig config = tiny_config(1);
  config.distill = {DistillKind::kSoft, work / "teacher/best", 0.5, 2};
  set_model(config, "channels", [](VitConfig& m) { m.channels = 1; });
  config.data.train = "synthetic:1x8x8x4x40";
  Ran ran;
  const Error error = train_error(ran, config, work / "student");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("distill.teacher takes images of 8 x 8, the student of 8 x 8"), kNone)
      << error.what();
}

}  // namespace
}  // namespace vitrail::testing
