// What the API says and accepts, value by value: classes, maps, types, limits, times, memory that lacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/attention_maps.h"
#include "api/classify.h"
#include "api/engine_fit.h"
#include "api/explain.h"
#include "api/explain_files.h"
#include "api/inference_ranks.h"
#include "api/precision.h"
#include "api/predictor.h"
#include "api/settings.h"
#include "backend/cpu/kernels.h"
#include "error_of.h"

namespace vitrail {
namespace {

TEST(ClassesTold, InTextAndJson) {
  const std::vector<TopClass> top = {{7, "cat", 0.5}, {12, "dog\x1b", 0.125}};
  const std::string bar = "██████████          ";
  EXPECT_TRUE(top_classes_text(top, 2).starts_with("   50.00 %  " + bar + "      7  cat\n"))
      << top_classes_text(top, 2);
  EXPECT_EQ(top_classes_text(top, 0).find('\x1b'), std::string::npos) << "no terminal's command";
  EXPECT_EQ(nlohmann::json(top_classes_json(top)),
            nlohmann::json::parse(R"([{"class": 7, "label": "cat", "prob": 0.5},
                                      {"class": 12, "label": "dog\u001b", "prob": 0.125}])"));
  EXPECT_EQ(likeliest(std::vector<float>{1, NAN, 3, 3, NAN}, 5), std::vector<int>()) << "no answer";
  EXPECT_EQ(likeliest(std::vector<float>{1, 2}, -1), std::vector<int>());
  EXPECT_EQ(numbers_text(std::vector<float>{1, -0.5f, 1.0f / 3, 1e-9f}), "1 -0.5 0.3333333 1e-09");
  EXPECT_EQ(nlohmann::json(image_json("a/b.png")), (nlohmann::json{{"image", "a/b.png"}}));
  EXPECT_EQ(image_json("\xff\x01").at("image_hex"), "ff01");
  const Error error = error_of([] { require_finite(std::vector<float>{1, NAN, INFINITY}, "logits"); });
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics);
  EXPECT_EQ(error.message(), "the model gives NaN or infinity: 2 of 3 logits");
  EXPECT_NO_THROW(require_finite(std::vector<float>{1, -1e38f}, "logits"));
}

TEST(MapsTold, StretchedBetweenPercentiles) {
  PatchMap map(101);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(100 - i);
  const PatchMap wide = stretched(map);
  EXPECT_EQ(wide[100], 0) << "below the first percentile";
  EXPECT_EQ(wide[99], 0);
  EXPECT_FLOAT_EQ(wide[98], 1.0f / 96);
  EXPECT_EQ(wide[3], 1) << "the 97th";
  EXPECT_EQ(wide[0], 1);
  EXPECT_NEAR(evenness({1, 1, 0, 0}), 0.5, 1e-12);
  EXPECT_EQ(evenness({5}), 0);
  EXPECT_EQ(evenness({0, 0}), 0);
}

TEST(MapsTold, RequestsNameTheirBlock) {
  VitConfig config;
  config.depth = 12;
  const struct {
    const char* method;
    bool heads, mean, rollout;
  } rows[] = {{"heads", true, false, false},
              {"mean", false, true, false},
              {"rollout", false, false, true},
              {"all", true, true, true}};
  for (const auto& row : rows) {
    const AttentionRequest request = attention_request(row.method, -1, config, "--layer");
    EXPECT_EQ(request.heads, row.heads) << row.method;
    EXPECT_EQ(request.mean, row.mean) << row.method;
    EXPECT_EQ(request.rollout, row.rollout) << row.method;
    EXPECT_EQ(request.one_block(), row.heads || row.mean) << row.method;
    EXPECT_EQ(request.layer, 11) << "the last";
    const EngineOptions options = options_for(request, EngineOptions{.batch = 9});
    EXPECT_EQ(options.batch, 1);
    EXPECT_TRUE(options.attention);
    EXPECT_EQ(options.attention_block, row.rollout ? -1 : 11);
  }
  EXPECT_EQ(attention_request("mean", 0, config, "--layer").layer, 0);
  EXPECT_EQ(attention_request("mean", 11, config, "--layer").layer, 11);
  EXPECT_EQ(error_of([&] { attention_request("mean", 12, config, "--layer"); }).message(),
            "--layer is 12, but the model has blocks 0 to 11");
  EXPECT_EQ(error_of([&] { attention_request("rollout", -2, config, "layer"); }).message(),
            "layer is -2: expected a block from 0 to 11, or -1: the last");
  EXPECT_EQ(error_of([&] { attention_request("means", 0, config, ""); }).message(),
            "expected the maps heads, mean, rollout or all, found \"means\"");
}

TEST(MapsTold, EveryImageHasAFolder) {
  std::vector<std::string> notes;
  EXPECT_EQ(output_folders({"a/x.png"}, "out", notes), std::vector<std::string>{"out"});
  EXPECT_EQ(output_folders({"a/x.png", "b/x.jpg", "x-2.png", "c/x.webp", "..", "y.tar.gz"}, "out", notes),
            (std::vector<std::string>{"out/x", "out/x-2", "out/x-2-2", "out/x-3", "out/image", "out/y.tar"}));
  EXPECT_EQ(notes, (std::vector<std::string>{"b/x.jpg goes to out/x-2: another image is named x",
                                             "x-2.png goes to out/x-2-2: another image is named x-2",
                                             "c/x.webp goes to out/x-3: another image is named x"}));
}

TEST(TypesOfAnEngine, FollowDeviceAndName) {
  const struct {
    const char *dtype, *device, *backend;
    DType compute;
    Arithmetic arithmetic;
  } rows[] = {{"f32", "cpu", "cpu", DType::kF32, Arithmetic::kExact},
              {"bf16", "cpu", "cpu", DType::kF32, Arithmetic::kBF16},
              {"int8", "cpu", "cpu", DType::kF32, Arithmetic::kInt8},
              {"fp8", "cpu", "ref", DType::kF32, Arithmetic::kFp8},
              {"tf32", "cpu", "ref", DType::kF32, Arithmetic::kTF32},
              {"f32", "cuda", "cuda", DType::kF32, Arithmetic::kExact},
              {"bf16", "cuda", "cuda", DType::kBF16, Arithmetic::kExact},
              {"f16", "cuda:1", "cuda", DType::kF16, Arithmetic::kExact},
              {"fp8", "cuda", "cuda", DType::kBF16, Arithmetic::kFp8},
              {"tf32", "cuda", "cuda", DType::kF32, Arithmetic::kTF32}};
  for (const auto& row : rows) {
    EngineOptions engine{.backend = row.backend, .compute = DType::kF64};
    set_precision(row.dtype, row.device, engine);
    EXPECT_EQ(engine.compute, row.compute) << row.dtype << " " << row.device;
    EXPECT_EQ(engine.arithmetic, row.arithmetic) << row.dtype << " " << row.device;
  }
  const struct {
    const char *dtype, *device, *message, *hint;
  } refused[] = {{"int8", "cuda", "int8 runs on the CPU alone so far", "--dtype bf16 on a GPU"},
                 {"f16", "cpu", "--dtype f16 needs --device cuda",
                  "--dtype bf16 or int8 on the CPU; weights stored as f16 are read as they are"},
                 {"fp8", "cpu", "--dtype fp8 needs --device cuda",
                  "--dtype bf16 or int8 on the CPU; --backend ref computes it anywhere, slowly"}};
  for (const auto& row : refused) {
    const Error error = error_of([&] { check_precision(row.dtype, row.device, "cpu", "--"); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(error.message(), row.message);
    EXPECT_EQ(error.hint(), row.hint);
  }
}

TEST(OptionsOfAModel, EndsOfRanges) {
  const auto kind = [](const ModelOptions& options) {
    return error_of([&] { engine_options(options), open_options(options); }).kind();
  };
  for (const ModelOptions& good : {ModelOptions{.threads = 0},
                                   {.threads = 4096},
                                   {.batch = 65536},
                                   {.image_size = 65536},
                                   {.image_height = 65536, .image_width = 1}})
    EXPECT_EQ(kind(good), ErrorKind::kInternal);
  for (const ModelOptions& bad : {ModelOptions{.threads = -1},
                                  {.threads = 4097},
                                  {.batch = 0},
                                  {.batch = 65537},
                                  {.image_size = -1},
                                  {.image_size = 65537},
                                  {.image_height = 65537, .image_width = 1},
                                  {.image_height = 1, .image_width = 65537},
                                  {.image_height = 8},
                                  {.image_width = 8},
                                  {.image_size = 8, .image_width = 8}})
    EXPECT_EQ(kind(bad), ErrorKind::kUsage);
  const OpenOptions square = open_options({.image_size = 96}),
                    oblong = open_options({.arch = "x", .image_height = 32, .image_width = 64});
  EXPECT_EQ(square.image_height, 96);
  EXPECT_EQ(square.image_width, 96);
  EXPECT_EQ(oblong.image_height, 32);
  EXPECT_EQ(oblong.image_width, 64);
  EXPECT_EQ(oblong.arch, "x");
  const EngineOptions engine = engine_options({.dtype = "bf16", .threads = 3, .batch = 5});
  EXPECT_EQ(engine.backend, "cpu");
  EXPECT_EQ(engine_options({.device = "cuda:1"}).backend, "cuda");
  EXPECT_EQ(engine_options({.device = "cuda:1"}).ordinal, 1);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(engine.batch, 5);
  const Error type = error_of([] { engine_options({.dtype = "bf61"}); });
  EXPECT_EQ(type.message(), "dtype expects one of f32, bf16, f16, int8, fp8, tf32, not \"bf61\"");
  EXPECT_NE(type.hint().find("dtype bf16"), std::string::npos) << type.hint();
  EXPECT_EQ(error_of([] { require_threads(-7); }).message(), "threads is -7: expected 0 to 4096");
}

TEST(OptionsOfAModel, AConfigIsTextOrAPath) {
  EXPECT_EQ(training_config(" \n { /* yes */ \"train\": {\"batch\": 12} }").train.batch, 12);
  EXPECT_EQ(error_of([] { training_config(" \t\n"); }).kind(), ErrorKind::kUsage);
  EXPECT_EQ(error_of([] { training_config("{"); }).kind(), ErrorKind::kConfig);
  EXPECT_EQ(error_of([] { training_config("nowhere.json"); }).kind(), ErrorKind::kConfig);
}

TEST(PredictTimesTold, EachNumberIsItsOwn) {
  const PredictTimes times{.images = 1200,
                           .batch = 8,
                           .threads = 3,
                           .seconds = 4,
                           .start = 0.5,
                           .compute = 2.5,
                           .wait = 0.25,
                           .decode = 6};
  EXPECT_EQ(
      nlohmann::json(to_json(times)),
      nlohmann::json::parse(R"({"images": 1200, "batch": 8, "threads": 3, "img_per_s": 300.0, "seconds": 4.0,
                "start_seconds": 0.5, "compute_seconds": 2.5, "wait_seconds": 0.25, "decode_seconds": 6.0})"));
  EXPECT_EQ(
      to_text(times),
      "1,200 images in 4.00 s, 300 images/s, after 500 ms to load the model: computing 2.50 s, waiting for "
      "images 250 ms; decoding beside it 6.00 s of processor time");
  EXPECT_EQ(PredictTimes{.images = 3}.rate(), 0);
}

TEST(TasksOfAModel, HaveTheirOutputs) {
  ModelCard card;
  card.config.classes = 0;
  EXPECT_EQ(tasks_of(card), std::vector{PredictTask::kEmbed});
  card.config.classes = 3;
  EXPECT_EQ(tasks_of(card), (std::vector{PredictTask::kClassify, PredictTask::kLogits, PredictTask::kEmbed}));
  for (const ScoreKind scores : {ScoreKind::kSoftmax, ScoreKind::kSigmoid}) {
    card.scores = scores;
    for (const PredictTask task : tasks_of(card)) {
      const EngineOptions options = options_for(task, card, {.features = true, .probabilities = true});
      EXPECT_EQ(options.features, task == PredictTask::kEmbed);
      EXPECT_EQ(options.probabilities, task == PredictTask::kClassify && scores == ScoreKind::kSoftmax);
    }
  }
}

TEST(TasksOfAModel, ARankTakesAtLeastAnImageEach) {
  InferenceRank rank{.distribution = {.mesh = {{4, 1, 1, 1}, 2}}, .threads = 3};
  EXPECT_EQ(rank.on_rank({.threads = 1, .batch = 2}).batch, 4);
  EXPECT_EQ(rank.on_rank({.threads = 1, .batch = 9}).batch, 9);
  EXPECT_EQ(rank.on_rank({.threads = 1}).threads, 3);
  rank.threads = 0;
  EXPECT_EQ(rank.on_rank({.threads = 1}).threads, 1);
  EXPECT_EQ(rank.on_rank({}).distribution.mesh.rank, 2);
}

class Fit : public testing::Test {
 protected:
  static constexpr size_t kMiB = 1 << 20;
  Fit() {
    config_.image_height = config_.image_width = 32, config_.patch = 8;
    config_.width = 48, config_.depth = 2, config_.heads = 3, config_.mlp = 96, config_.classes = 7;
  }
  ExecutionPlan planned(int64_t batch) const {
    return plan_inference(config_, {.batch = batch}, planned_cpu_device(1, "avx2"));
  }
  size_t peak(int64_t batch) const { return planned(batch).memory.peak_bytes(); }
  Error error(int64_t batch, size_t available, size_t checked = 0, const HeldBeside& beside = {}) const {
    DeviceInfo device = planned_cpu_device(1, "avx2");
    device.memory_bytes = available;
    const RankContext rank(device);
    const ExecutionPlan plan = planned(batch);
    return error_of([&] {
      require_fit(plan, plan.memory.peak_bytes(), checked, rank, config_,
                  {.batch = batch, .beside = beside, .dash = "--"});
    });
  }
  VitConfig config_;
};

TEST_F(Fit, TheLastByteDecidesAndTheLargestBatchIsNamed) {
  EXPECT_EQ(error(8, peak(8)).kind(), ErrorKind::kInternal);
  const Error less = error(8, peak(8) - 1);
  EXPECT_EQ(less.kind(), ErrorKind::kMemory);
  int64_t most = 0;
  for (int64_t batch = 1; batch < 8; ++batch)
    if (peak(batch) < peak(8)) most = batch;
  EXPECT_EQ(less.hint(), strf("--batch %lld fits", static_cast<long long>(most)));
  std::vector<std::pair<size_t, std::string>> rows;
  const ExecutionPlan plan = planned(8);
  for (size_t c = 0; c < kCategoryCount; ++c)
    rows.emplace_back(plan.memory.by_category[c], to_string(static_cast<Category>(c)));
  std::sort(rows.rbegin(), rows.rend());
  const auto mib = [](size_t bytes) { return strf("%.1f MiB", static_cast<double>(bytes) / kMiB); };
  EXPECT_TRUE(less.message().starts_with("batch 8 needs " + mib(peak(8)) + " (" + rows[0].second + " " +
                                         mib(rows[0].first) + ", " + rows[1].second + " "))
      << less.message();
  EXPECT_NE(less.message().find("; " + mib(peak(8) - 1) + " is all that "), std::string::npos)
      << less.message();
  EXPECT_EQ(error(1, peak(1) - 1).hint(), "a smaller model: one image does not fit either");
}

TEST_F(Fit, WhatIsHeldBesideCountsAndIsNamed) {
  EXPECT_EQ(error(8, peak(8) + kMiB, kMiB).kind(), ErrorKind::kInternal);
  EXPECT_NE(error(8, peak(8) + kMiB - 1, kMiB).message().find(", the check's own parameters 1.0 MiB)"),
            std::string::npos);
  const HeldBeside held{
      .batches_bytes = 3 * kMiB, .decoder_bytes = 2 * kMiB, .decoders = 4, .option = "--threads "};
  EXPECT_EQ(held.bytes(), 11 * kMiB);
  EXPECT_EQ(error(1, peak(1) + 11 * kMiB, 0, held).kind(), ErrorKind::kInternal);
  const Error two = error(1, peak(1) + 8 * kMiB, 0, held);
  EXPECT_NE(two.message().find(", prefetched batches 3.0 MiB, images being decoded 8.0 MiB)"),
            std::string::npos)
      << two.message();
  EXPECT_EQ(two.hint(), "--threads 2: fewer images are decoded at once");
  EXPECT_EQ(error(8, peak(1) + 5 * kMiB, 0, held).hint(),
            "--threads 1 and a smaller --batch: fewer images are decoded at once");
  EXPECT_EQ(error(8, peak(1) + kMiB, 0, held).hint(),
            "smaller images: the model fits, but not with one of these being decoded beside it");
}

}  // namespace
}  // namespace vitrail
