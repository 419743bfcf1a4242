// What a run mentions before it begins.
#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

using Change = std::function<void(TrainConfig&)>;

std::string notes_of(const Change& change, int ranks) {
  TrainConfig config = tiny_config(1);
  config.data.val = "synthetic:3x8x8x4x80";
  change(config);
  std::string all;
  for (const std::string& note : set_up(config, {}, {0, ranks, ranks}).notes) all += note + "\n";
  return all;
}

TEST(RunNotes, WhatDoesNotDivideIsTold) {
  const int64_t images = open_dataset("synthetic:3x8x8x4x40", Part::kTrain)->size();
  const int64_t evaluated = open_dataset("synthetic:3x8x8x4x80", Part::kVal)->size();
  const std::string uneven =
      notes_of([](TrainConfig& c) { c.train.batch = 10, c.train.eval_batch = 3, c.mesh.dp = 3; }, 3);
  EXPECT_NE(uneven.find("a micro-batch of 10 images is cut unevenly among 3 ranks: 3 to 4 each\n"),
            std::string::npos)
      << uneven;
  if (images % 10 > 0) {
    EXPECT_NE(uneven.find(
                  strf("%d training images are no whole number of updates of 10: each pass leaves out %d of "
                       "them, other ones every time\n",
                       static_cast<int>(images), static_cast<int>(images % 10))),
              std::string::npos)
        << uneven;
  }
  ASSERT_NE(evaluated % 9, 0);
  EXPECT_NE(uneven.find(
                strf("the last batch of an evaluation has %d of 9 images on all ranks together; its padding "
                     "does not count\n",
                     static_cast<int>(evaluated % 9))),
            std::string::npos)
      << uneven;
  const std::string odd = notes_of([](TrainConfig& c) { c.train.batch = 14, c.mesh.dp = 2; }, 2);
  ASSERT_NE(images % 14, 0);
  EXPECT_NE(odd.find(strf("updates of 14: each pass leaves out %d of them", static_cast<int>(images % 14))),
            std::string::npos)
      << odd;
  EXPECT_EQ(odd.find("unevenly"), std::string::npos) << odd;
  const std::string one = notes_of([](TrainConfig& c) { c.train.batch = 14; }, 1);
  EXPECT_EQ(one.find("leaves out"), std::string::npos) << "of ranks alone: " << one;
}

TEST(RunNotes, ManyRanksOfAHostAreToldToShareTheUpdate) {
  const auto advises = [](const Change& change, int ranks) {
    const std::string notes = notes_of(
        [&](TrainConfig& c) {
          c.train.batch = 16;
          change(c);
        },
        ranks);
    return notes.find("mesh.zero=1 shares it out") != std::string::npos;
  };
  EXPECT_TRUE(advises([](TrainConfig&) {}, 4));
  EXPECT_FALSE(advises([](TrainConfig&) {}, 3));
  EXPECT_FALSE(advises([](TrainConfig& c) { c.mesh.tp = 2; }, 4)) << "two along dp";
  EXPECT_FALSE(advises([](TrainConfig& c) { c.mesh.zero = 1; }, 4));
  EXPECT_FALSE(advises([](TrainConfig& c) { c.mesh.verify_every = 5; }, 4)) << "pieces have no replicas";
}

TEST(RunNotes, SharesByHandAreToldInstead) {
  const std::string text = notes_of(
      [](TrainConfig& c) {
        c.mesh.dp = 2, c.train.batch = 12, c.mesh.balance = {"[8,4]"};
        c.augment.mixup = 0.5, c.augment.mix_group = 4;
      },
      2);
  EXPECT_NE(
      text.find("a micro-batch of 12 images is cut by mesh.balance: [8,4], in groups of 4; the last group is "
                "that of dp=1; evaluations are cut in proportion\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(notes_of([](TrainConfig& c) { c.mesh.dp = 2, c.train.batch = 9, c.mesh.balance = {"auto"}; }, 2)
                .find("unevenly"),
            std::string::npos);
}

TEST(RunNotes, WhatIsTrainedOfAllIsCounted) {
  const std::string probe = notes_of([](TrainConfig& c) { c.params.linear_probe = true; }, 1);
  const int64_t all = count_params(set_up(tiny_config(1)).step.model);
  const int64_t head = 4 * set_up(tiny_config(1)).step.model.width + 4;
  EXPECT_NE(probe.find(strf("trains %d of %d parameters\n", static_cast<int>(head), static_cast<int>(all))),
            std::string::npos)
      << probe;
  EXPECT_EQ(notes_of([](TrainConfig&) {}, 1).find("trains "), std::string::npos);
}

TEST(RunNotes, WhatAModelStartsFromIsNamed) {
  const WorkFolder work;
  train(tiny_config(1), work / "first");
  TrainConfig config = tiny_config(1);
  config.model.init = work / "first/best";
  using Notes = std::vector<std::string>;
  EXPECT_EQ(set_up(config).model->notes, Notes{"starts from " + (work / "first/best")});
  config.data.train = "synthetic:3x8x8x5x40";
  EXPECT_EQ(set_up(config).model->notes, (Notes{"starts from " + (work / "first/best"),
                                                "head replaced: 4 classes of the file, 5 of the data"}));
  config.data.train = "synthetic:3x8x8x4x40", config.data.class_names = {"a", "b", "c", "d"};
  EXPECT_EQ(set_up(config).model->notes,
            (Notes{"starts from " + (work / "first/best"),
                   "head replaced: the file's classes have other names than the data's"}));
  EXPECT_EQ(set_up(tiny_config(1)).model->notes, Notes());
  set_model(config, "width", [](VitConfig& m) { m.width = 32; });
  const Error error = error_of([&] { set_up(config); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(error.message(), "model.width cannot differ from that of model.init");
  EXPECT_EQ(error.hint(), "leave it out, or start from scratch without model.init");
}

TEST(RunNotes, AnUpdateOfMoreThanAllImagesIsTold) {
  const int64_t images = open_dataset("synthetic:3x8x8x4x40", Part::kTrain)->size();
  const auto notes = [&](int64_t batch) {
    return notes_of([&](TrainConfig& c) { c.train.batch = batch; }, 1);
  };
  EXPECT_EQ(notes(images).find("several times"), std::string::npos);
  EXPECT_NE(notes(images + 1)
                .find(strf("an update of %d images sees some of the %d several times\n",
                           static_cast<int>(images) + 1, static_cast<int>(images))),
            std::string::npos)
      << notes(images + 1);
}

TEST(RunNotes, APipelineIsToldWhatFillsIt) {
  const auto notes = [](int64_t accumulation) {
    return notes_of([&](TrainConfig& c) { c.mesh.pp = 2, c.train.accumulation = accumulation; }, 2);
  };
  EXPECT_NE(notes(1).find("a pipeline of 2 stages has 1 micro-batches an update: stages wait 50 % of the "
                          "time; train.accumulation of 8 or more fills it\n"),
            std::string::npos)
      << notes(1);
  EXPECT_EQ(notes(2).find("a pipeline of"), std::string::npos) << "as many as stages";
}

TEST(RunNotes, APipelineRunsOnCpus) {
  TrainConfig config = tiny_config(1);
  EXPECT_NO_THROW(set_up(config));
  DeviceInfo gpu;
  gpu.shares_host_memory = false, gpu.name = "a GPU";
  config.mesh.pp = 2, config.train.accumulation = 2;
  set_model(config, "depth", [](VitConfig& m) { m.depth = 2; });
  const Error error = error_of([&] { set_up(config, gpu, {0, 2, 2}); });
  EXPECT_NE(error.message().find("mesh.pp 2 on a GPU: a pipeline runs on CPUs"), std::string::npos)
      << error.message();
}

}  // namespace
}  // namespace vitrail::testing
