// Streaming: batches in the list's order whatever the threads, failures in their places, nothing lost at the
// ends; and predict and eval give the same outputs however their work is split.
#include "api/image_stream.h"

#include <gtest/gtest.h>

#include "data/decode.h"
#include "data/preprocess.h"
#include "in_process.h"
#include "source_root.h"

namespace vitrail::cli {
namespace {

const std::string kModels = std::string(VT_SOURCE_DIR) + "/tests/golden/models/";
const std::string kImages = std::string(VT_SOURCE_DIR) + "/examples/images/";

PreprocessConfig small() {
  PreprocessConfig config;
  config.height = config.width = config.resize = 16;
  return config;
}

// Good and bad images, whose numbers follow from their places.
std::vector<std::string> mixed_list(const TempFolder& folder, size_t count, size_t bad_every) {
  const std::string bad = folder.file("bad.png", "no image");
  std::vector<std::string> paths;
  for (size_t i = 0; i < count; ++i)
    paths.push_back(i % bad_every == 1 ? bad : kImages + (i % 2 ? "rocket.jpg" : "chelsea.png"));
  return paths;
}

TEST(ImageStream, OrderAndFailuresDoNotDependOnThreadsAndBatches) {
  const TempFolder folder;
  const std::vector<std::string> paths = mixed_list(folder, 11, 4);
  std::vector<float> expected;
  for (const std::string& path : paths) {
    std::vector<float> pixels(3 * 16 * 16);
    if (!path.ends_with("bad.png")) preprocess(load_image(path), small(), pixels);
    expected.insert(expected.end(), pixels.begin(), pixels.end());
  }
  for (const int64_t threads : {1, 2, 5})
    for (const int64_t batch : {1, 3, 4, 11}) {
      SCOPED_TRACE(strf("%d threads, batches of %d", static_cast<int>(threads), static_cast<int>(batch)));
      ImageStream stream(paths, {small(), 3, batch, threads});
      std::vector<float> pixels;
      std::vector<size_t> failed;
      while (!stream.done()) {
        const ImageBatch given = stream.next();
        EXPECT_EQ(given.first * 3 * 16 * 16, pixels.size());
        EXPECT_EQ(given.readable() + given.failures.size(), given.count);
        pixels.insert(pixels.end(), given.pixels.begin(), given.pixels.end());
        for (const auto& [index, error] : given.failures) {
          failed.push_back(index);
          EXPECT_EQ(error.kind(), ErrorKind::kData);
          EXPECT_NE(std::string(error.what()).find("bad.png"), std::string::npos);
        }
      }
      EXPECT_EQ(pixels, expected);
      EXPECT_EQ(failed, (std::vector<size_t>{1, 5, 9}));
      EXPECT_GT(stream.decode_seconds(), 0);
    }
}

TEST(ImageStream, CanBeLeftHalfWay) {
  const std::vector<std::string> paths(40, kImages + "rocket.jpg");
  for (int given : {0, 1}) {
    ImageStream stream(paths, {small(), 3, 2, 3});
    for (int i = 0; i < given; ++i) stream.next();
  }
}

TEST(ImageStream, WhatIsWrongWithTheModelIsThrown) {
  const std::vector<std::string> paths = {kImages + "rocket.jpg"};
  EXPECT_THROW(ImageStream(paths, {small(), 2, 1, 1}), Error) << "no image has two channels";
}

TEST(EvenBatch, LeavesAsLittlePaddingAsCanBe) {
  const struct {
    int64_t count, most, batch;
  } cases[] = {{1, 8, 1}, {8, 8, 8}, {9, 8, 5}, {17, 8, 6}, {1000, 8, 8}, {1001, 8, 8}, {3, 8, 3}};
  for (const auto& c : cases) {
    EXPECT_EQ(even_batch(c.count, c.most), c.batch) << c.count;
    const int64_t batches = (c.count + c.batch - 1) / c.batch;
    EXPECT_EQ(batches, (c.count + c.most - 1) / c.most) << c.count << ": no more runs than needed";
  }
}

TEST(BatchesAhead, WorkersAlwaysFindAnImageAndMemoryIsBounded) {
  for (const int64_t batch : {1, 8, 64, 4096})
    for (const int64_t workers : {1, 2, 16, 64}) {
      const int64_t ahead = batches_to_prefetch(batch, workers);
      EXPECT_GE(ahead * batch, std::min<int64_t>(2 * workers, 64));
      EXPECT_LE(ahead, batch >= 64 ? 3 : 64);
    }
}

// What predict prints for a list, bad images included; the error at its end is the list's.
std::string predicted(std::vector<std::string> arguments, const std::vector<std::string>& paths) {
  const TempFolder folder;
  std::string list;
  for (const std::string& path : paths) list += path + "\n";
  arguments.insert(arguments.end(), {"-m", kModels + "hf_single", "@" + folder.file("list.txt", list)});
  return run_in_process("predict", arguments).out;
}

TEST(Predict, AnswersDoNotDependOnBatchesAndThreads) {
  const TempFolder folder;
  const std::vector<std::string> paths = mixed_list(folder, 9, 100);
  const std::vector<std::string> good(paths.begin() + 2, paths.end());
  const std::string expected = predicted({"--threads", "1", "--batch", "1"}, good);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 7);
  EXPECT_EQ(predicted({"--threads", "3"}, good), expected);
  EXPECT_EQ(predicted({"--batch", "4", "--threads", "2"}, good), expected);
  const std::string embedded = predicted({"--embed", "--batch", "1"}, good);
  EXPECT_EQ(predicted({"--embed", "--threads", "2"}, good), embedded);
}

TEST(Predict, BadImagesStandAmongTheOthersInTheirPlaces) {
  const TempFolder folder;
  const std::vector<std::string> paths = mixed_list(folder, 6, 4);
  try {
    predicted({"--batch", "2"}, paths);
    FAIL() << "two images are bad";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(), "2 of 6 images failed");
  }
}

TEST(Predict, TimingSaysWhereTheTimeWent) {
  const std::vector<std::string> arguments = {"-m", kModels + "hf_single", kImages + "rocket.jpg",
                                              "--timing"};
  const auto json = nlohmann::json::parse(run_in_process("predict", arguments).err);
  EXPECT_EQ(json["images"], 1);
  for (const char* name : {"seconds", "start_seconds", "compute_seconds", "decode_seconds"})
    EXPECT_GT(json[name].get<double>(), 0) << name;
  EXPECT_GE(json["wait_seconds"].get<double>(), 0);
  const std::string text = run_in_process("predict", arguments, false).err;
  EXPECT_NE(text.find("waiting for images"), std::string::npos) << text;
}

TEST(BenchStream, MeasuresEachAloneAndBoth) {
  const std::string image = kImages + "rocket.jpg";
  const auto json = run_in_process("bench stream", {"-m", kModels + "hf_single", image, image, image,
                                                    "--rounds", "2", "--batch", "2"})
                        .json();
  EXPECT_EQ(json["images"], 3);
  EXPECT_EQ(json["batch"], 2);
  for (const char* name : {"decode_seconds", "compute_seconds", "both_seconds"})
    EXPECT_EQ(json[name].size(), 2u) << name;
  EXPECT_GT(json["ratio_to_slower"].get<double>(), 0);
  const std::string told =
      run_in_process("bench stream", {"-m", kModels + "hf_single", image, "--rounds", "1"}, false).out;
  EXPECT_TRUE(told.starts_with("images            1, batch 1, on ")) << told;
  EXPECT_THROW(run_in_process("bench stream", {"-m", kModels + "hf_single", "/no/such.png"}), Error);
}

}  // namespace
}  // namespace vitrail::cli
