// Ranks that hold parts of one model read the same images: one of them decodes, the others receive.
#include <cstdlib>
#include <mutex>

#include "image_folder.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

// A batch as a rank sees it.
struct Seen {
  std::vector<float> images, targets, weights;
  std::vector<int64_t> samples;
  std::vector<uint8_t> pixels;
  std::vector<std::string> bad;
  bool operator==(const Seen&) const = default;
};

template <typename T>
std::vector<T> copied(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// Without those of samples that could not be read: their rows hold what was there before, and count nothing.
std::vector<uint8_t> counted_pixels(const Batch& batch) {
  std::vector<uint8_t> pixels = copied(batch.pixels);
  const size_t row = pixels.size() / batch.weights.size();
  for (size_t i = 0; i < batch.weights.size(); ++i)
    if (batch.weights[i] == 0) std::fill_n(pixels.begin() + static_cast<int64_t>(i * row), row, uint8_t{0});
  return pixels;
}

struct RankLoading {
  std::vector<Seen> batches;
  double cpu_seconds = 0;
};

// The batches of every rank of a mesh.
std::vector<RankLoading> load(TrainConfig config, int ranks, ImageForm form, int64_t batches,
                              Purpose purpose = Purpose::kTrain) {
  std::vector<RankLoading> loaded(static_cast<size_t>(ranks));
  run_ranks(
      {.worlds = thread_communicators(ranks),
       .mesh = resolved(config.mesh, ranks),
       .device = [](int) { return cpu_device(1); },
       .sharing = ranks},
      [&](RankContext& rank) {
        const int number = rank.ranks ? rank.ranks->mesh().rank : 0;
        RankLoading& mine = loaded[static_cast<size_t>(number)];
        RunSetup setup = set_up(config, rank.device, {number, ranks, ranks});
        setup.reach(rank.ranks);
        LoaderSettings settings = setup.loader_settings(purpose);
        settings.form = form;
        std::vector<std::string> bad;
        settings.on_bad = [&](const BadSample& sample) {
          bad.push_back(sample.name + sample.reason + sample.error.what());
        };
        const auto loader = purpose == Purpose::kTrain ? make_train_loader(*setup.data.train, settings)
                                                       : make_eval_loader(*setup.data.train, settings);
        for (int64_t i = 0; i < batches; ++i) {
          if (i == 2 && purpose == Purpose::kTrain) loader->seek(5);
          const Batch& batch = loader->next();
          mine.batches.push_back({copied(batch.images), copied(batch.targets), copied(batch.weights),
                                  copied(batch.samples), counted_pixels(batch), std::exchange(bad, {})});
        }
        mine.cpu_seconds = loader->cpu_seconds();
      });
  return loaded;
}

TrainConfig folder_config(const std::string& data) {
  TrainConfig config = tiny_config(4);
  config.train.batch = 12;
  config.data.train = data;
  config.data.val_fraction = 0;
  config.loader.on_error = OnError::kSkip;
  config.loader.max_bad_fraction = 0.5;
  config.augment.hflip = 0.5;
  return config;
}

void expect_same(const std::vector<Seen>& found, const std::vector<Seen>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].samples, wanted[i].samples);
    EXPECT_EQ(found[i].bad, wanted[i].bad);
    EXPECT_EQ(found[i].targets, wanted[i].targets);
    EXPECT_EQ(found[i].weights, wanted[i].weights);
    EXPECT_EQ(found[i].images, wanted[i].images);
    EXPECT_EQ(found[i].pixels, wanted[i].pixels);
  }
}

// Pixels, labels, sample numbers and the samples that cannot be read are those of a rank that decodes itself.
TEST(DecodeOnce, EveryRankOfAGroupHasTheBatchesOfOne) {
  const WorkFolder work;
  TrainConfig config = folder_config(image_folder(work, {5, 17, 30}));
  for (const ImageForm form : {ImageForm::kFloats, ImageForm::kPixels}) {
    const std::vector<Seen> wanted = load(config, 1, form, 6)[0].batches;
    TrainConfig shared = config;
    shared.mesh.tp = 2, shared.mesh.sp = 1;
    for (const RankLoading& rank : load(shared, 2, form, 6)) expect_same(rank.batches, wanted);
    shared.mesh.tp = 1, shared.mesh.sp = 2;
    for (const RankLoading& rank : load(shared, 2, form, 6)) expect_same(rank.batches, wanted);
  }
}

// With dp, each group has a part of the batch and its own rank that decodes.
TEST(DecodeOnce, GroupsDecodeTheirOwnShare) {
  const WorkFolder work;
  TrainConfig config = folder_config(image_folder(work));
  const auto apart = load(config, 2, ImageForm::kFloats, 3);
  config.mesh.tp = 2;
  const auto groups = load(config, 4, ImageForm::kFloats, 3);
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(groups[rank].batches, apart[rank / 2].batches) << rank;
  for (const size_t rank : {1, 3}) EXPECT_EQ(groups[rank].cpu_seconds, 0) << "rank " << rank << " decodes";
  for (const size_t rank : {0, 2}) EXPECT_GT(groups[rank].cpu_seconds, 0);
}

// The last stage of a pipeline makes its targets, mixed as the images are, without them: that one cannot be
// read ends the first stage alone. Stages between ask for nothing.
TEST(DecodeOnce, OnlyTheFirstStageDecodes) {
  const WorkFolder work;
  TrainConfig config = folder_config(image_folder(work));
  config.loader.on_error = OnError::kFail;
  config.augment.mixup = 0.8, config.augment.cutmix = 1, config.augment.mix_group = 4;
  config.train.accumulation = 3;
  const std::vector<Seen> wanted = load(config, 1, ImageForm::kFloats, 6)[0].batches;
  config.mesh.pp = 2;
  for (const auto& [form, broken] : {std::pair{ImageForm::kFloats, false}, {ImageForm::kPixels, true}}) {
    if (broken) config.data.train = image_folder(work, {5, 17, 30});
    const RunSetup last = set_up(config, cpu_device(1), {1, 2, 2});
    EXPECT_EQ(last.decoding_bytes, 0u);
    LoaderSettings settings = last.loader_settings(Purpose::kTrain);
    settings.form = form;
    const auto loader = make_train_loader(*last.data.train, settings);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (i == 2) loader->seek(5);
      const Batch& batch = loader->next();
      EXPECT_EQ(copied(batch.samples), wanted[i].samples);
      EXPECT_EQ(copied(batch.targets), wanted[i].targets) << "batch " << i;
      EXPECT_EQ(copied(batch.weights), wanted[i].weights);
      EXPECT_TRUE(batch.images.empty() && batch.pixels.empty() && batch.recipes.empty());
    }
  }
  Ran ran;
  config.augment = {};
  const Error error = train_error(ran, config, work / "run", {.ranks = 2});
  EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
}

// Where samples are skipped, a batch depends on what could be read: the last stage decodes its own in
// training, and in an evaluation the first one tells all.
TEST(DecodeOnce, StagesAgreeOnWhatWasSkipped) {
  const WorkFolder work;
  TrainConfig config = folder_config(image_folder(work, {5, 17, 30}));
  config.train.accumulation = 2;
  const std::vector<Seen> training = load(config, 1, ImageForm::kFloats, 4)[0].batches,
                          evaluated = load(config, 1, ImageForm::kFloats, 3, Purpose::kEval)[0].batches;
  config.mesh.pp = 3;
  set_model(config, "depth", [](VitConfig& m) { m.depth = 3; });
  const auto stages = load(config, 3, ImageForm::kFloats, 4);
  for (const size_t stage : {0, 2}) expect_same(stages[stage].batches, training);
  const auto judges = load(config, 3, ImageForm::kFloats, 3, Purpose::kEval);
  for (const RankLoading& stage : judges) expect_same(stage.batches, evaluated);
  for (const size_t stage : {1, 2})
    EXPECT_EQ(judges[stage].cpu_seconds, 0) << "stage " << stage << " decodes";
}

// A pipeline learns what one rank does, and judges it alike.
TEST(DecodeOnce, APipelineRunsAsOneRank) {
  for (const OnError on_error : {OnError::kFail, OnError::kSkip}) {
    const WorkFolder work;
    const bool skips = on_error == OnError::kSkip;
    TrainConfig config = folder_config(skips ? image_folder(work, {5, 17}) : image_folder(work));
    config.loader.on_error = on_error;
    config.data.val_fraction = 0.25;
    config.train.eval_every = 2;
    config.train.accumulation = 3;
    config.augment.mixup = 0.8, config.augment.cutmix = 1, config.augment.mix_group = 2;
    const Ran wanted = train(config, work / "one");
    config.mesh.pp = 2;
    const Ran found = train(config, work / "two", {.ranks = 2});
    EXPECT_LT(worst_share(found.losses(), wanted.losses()), 1e-5);
    ASSERT_EQ(found.evals.size(), wanted.evals.size());
    ASSERT_GT(found.evals.size(), 1u);
    for (size_t i = 0; i < wanted.evals.size(); ++i) {
      EXPECT_EQ(found.evals[i].count, wanted.evals[i].count);
      EXPECT_NEAR(found.evals[i].loss, wanted.evals[i].loss, 1e-5 * wanted.evals[i].loss);
    }
  }
}

// What a rank that receives holds is planned: one batch, and nothing for decoding.
TEST(DecodeOnce, AReceiverHoldsOneBatch) {
  TrainConfig config = tiny_config(1);
  config.mesh.tp = 2;
  const RunSetup first = set_up(config, cpu_device(1), {0, 2, 2}),
                 second = set_up(config, cpu_device(1), {1, 2, 2});
  const LoaderSettings gives = first.loader_settings(Purpose::kTrain),
                       receives = second.loader_settings(Purpose::kTrain);
  EXPECT_EQ(Loader::staging_bytes(gives),
            static_cast<size_t>(config.loader.prefetch + 1) * Loader::staging_bytes(receives));
  EXPECT_EQ(second.decoding_bytes, 0u);
}

// An image that ends the run ends it on every rank, with the error of the one that read it.
TEST(DecodeOnce, AnErrorOfTheDecoderEndsAll) {
  const WorkFolder work;
  TrainConfig config = folder_config(image_folder(work, {5}));
  config.loader.on_error = OnError::kFail;
  config.mesh.tp = 2;
  Ran ran;
  const Error error = train_error(ran, config, work / "run", {.ranks = 2});
  EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  EXPECT_NE(std::string(error.what()).find("05.png"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace vitrail::testing
