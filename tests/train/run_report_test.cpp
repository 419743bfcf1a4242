// The page that a run leaves: its verdict, its figures, and memory that was held as it was planned; what a
// resumed run says of what has changed.
#include <gtest/gtest.h>

#include "data/decode.h"
#include "train/helpers/answers.h"
#include "train/model_origin.h"

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

// The run's folder, what it keeps, and a file of that, but nothing that lies deeper.
TEST(OriginOfAModel, IsTheRunThatLiesAboveIt) {
  const WorkFolder work;
  train(tiny_config(1), work / "run");
  const FindModel as_named = [](const std::string& name) { return name; };
  const auto run_of = [&](const std::string& model) { return origin_of(work / model, as_named).run; };
  for (const char* model : {"run", "run/best", "run/best/model.safetensors", "run/checkpoints/latest",
                            "run/checkpoints/latest/model.safetensors"})
    EXPECT_EQ(run_of(model), work / "run") << model;
  EXPECT_EQ(run_of("run/checkpoints/a/b/c"), "");
}

// Relative places of both parts are looked for where the run was started, too.
TEST(OriginOfAModel, ItsDataIsSeenFromWhereTheRunWasStarted) {
  const WorkFolder work;
  for (const char* part : {"train", "val"})
    for (const char* name : {"a", "b"})
      for (int i = 0; i < 8; ++i) {
        const std::string folder = work / strf("data/%s/%s", part, name);
        std::filesystem::create_directories(folder);
        write_png(strf("%s/%d.png", folder.c_str(), i), Image::blank(8, 8, 3));
      }
  TrainConfig config = tiny_config(1);
  config.data.train = "folder:" + (work / "data/train"), config.data.val = "folder:" + (work / "data/val");
  train(config, work / "run");
  const std::string path = RunFiles(work / "run").config();
  std::string text = read_file(path, 1 << 20);
  for (size_t at; (at = text.find(work / "data")) != std::string::npos;) text.erase(at, (work / "").size());
  write_file(path, text);
  ModelOrigin origin{.run = work / "run", .started_in = work / "", .learned = {}};
  const RunData data = open_run_data(origin);
  EXPECT_EQ(data.config.val, "folder:" + (work / "data/val"));
  ASSERT_TRUE(data.splits.val);
  EXPECT_EQ(data.splits.val->size(), 16);
  origin.started_in.clear();
  EXPECT_THROW(open_run_data(origin), Error);
}

}  // namespace
}  // namespace vitrail::testing
