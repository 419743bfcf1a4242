#include <algorithm>

#include "data/loader_helpers.h"

namespace vitrail {
namespace {

using test::Copy;
using test::FakeDataset;
using test::small_settings;
using test::take;

TEST(LoaderErrors, FailsAtTheBatchOfABadSampleAndNamesIt) {
  FakeDataset data(64, 5);
  data.broken = {37};
  for (int64_t workers : {1, 4}) {
    LoaderSettings settings = small_settings(workers);
    auto loader = make_eval_loader(data, settings);
    take(*loader, 4);
    for (int again = 0; again < 2; ++again) {
      const Error error = test::error_of([&] { loader->next(); });
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find("fake#37"), std::string::npos) << error.message();
    }
    loader->seek(0);
    EXPECT_EQ(take(*loader, 1)[0].samples[0], 0);
  }
}

TEST(LoaderErrors, SkipsBadSamplesAndTellsOfEachOnce) {
  FakeDataset data(64, 5);
  data.broken = {3, 37};
  for (int64_t workers : {1, 3}) {
    LoaderSettings settings = small_settings(workers);
    settings.loader.on_error = OnError::kSkip;
    settings.loader.max_bad_fraction = 2.0 / 64;
    std::vector<std::string> told;
    settings.on_bad = [&](const BadSample& bad) { told.push_back(bad.name); };
    auto loader = make_train_loader(data, settings);
    int skipped = 0;
    for (const Copy& batch : take(*loader, 16))
      for (size_t i = 0; i < 8; ++i) {
        if (!data.broken.contains(batch.samples[i])) continue;
        ++skipped;
        EXPECT_EQ(batch.weights[i], 0);
        EXPECT_TRUE(std::ranges::all_of(std::span(batch.images).subspan(i * 192, 192),
                                        [](float x) { return x == 0; }));
      }
    EXPECT_EQ(skipped, 4);
    EXPECT_EQ(told.size(), 2u);
    ASSERT_EQ(loader->bad_samples().size(), 2u);
    EXPECT_NE(loader->bad_samples()[0].reason.find("cut short"), std::string::npos);
  }
}

// A loader that skips a sample of its second batch, which it has loaded ahead.
struct SkippedAhead {
  FakeDataset data{64, 5};
  std::vector<std::string> told;
  std::unique_ptr<Loader> loader;

  SkippedAhead() {
    data.broken = {9};
    LoaderSettings settings = small_settings();
    settings.loader.on_error = OnError::kSkip;
    settings.loader.max_bad_fraction = 1;
    settings.on_bad = [&](const BadSample& bad) { told.push_back(bad.name); };
    loader = make_eval_loader(data, settings);
    take(*loader, 1);
    while (!loader->peek()) std::this_thread::yield();
  }
};

TEST(LoaderErrors, ASkippedSampleIsToldWhenItsBatchIsTaken) {
  SkippedAhead ahead;
  EXPECT_TRUE(ahead.told.empty());
  take(*ahead.loader, 1);
  EXPECT_EQ(ahead.told, std::vector<std::string>{"fake#9"});
}

// The batch was loaded ahead, and the loader went past it: its slot holds other batches afterwards.
TEST(LoaderErrors, ASkippedSampleThatWasPassedOverIsNotTold) {
  SkippedAhead ahead;
  ahead.loader->seek(2);
  take(*ahead.loader, 6);
  EXPECT_TRUE(ahead.told.empty()) << ahead.told[0];
  EXPECT_TRUE(ahead.loader->bad_samples().empty());
  ahead.loader->seek(1);
  take(*ahead.loader, 1);
  EXPECT_EQ(ahead.told, std::vector<std::string>{"fake#9"});
}

TEST(LoaderErrors, AFailedBatchIsNotShownBeforehand) {
  FakeDataset data(64, 5);
  data.broken = {9};
  auto loader = make_eval_loader(data, small_settings(1));
  take(*loader, 1);
  while (data.loads < 17) std::this_thread::yield();  // the one worker is at the third batch
  EXPECT_FALSE(loader->peek());
  EXPECT_EQ(test::error_of([&] { loader->next(); }).kind(), ErrorKind::kData);
  EXPECT_FALSE(loader->peek());
}

TEST(LoaderErrors, TooManyBadSamplesFailAfterAll) {
  FakeDataset data(64, 5);
  data.broken = {3, 20, 37};
  LoaderSettings settings = small_settings();
  settings.loader.on_error = OnError::kSkip;
  settings.loader.max_bad_fraction = 2.0 / 64;
  auto loader = make_eval_loader(data, settings);
  take(*loader, 4);
  const Error error = test::error_of([&] { loader->next(); });
  EXPECT_NE(error.message().find("fake#37"), std::string::npos) << error.message();
  EXPECT_NE(error.hint().find("max_bad_fraction"), std::string::npos);
}

// The limit is the share of the samples, rounded up: a share above 0 always allows one.
TEST(LoaderErrors, TheShareOfBadSamplesIsRoundedUp) {
  const struct {
    int64_t bad;
    double share;
    bool passes;
  } rows[] = {{0, 0, true},     {1, 0, false},    {1, 0.001, true}, {2, 0.001, false},
              {1, 0.015, true}, {2, 0.016, true}, {3, 0.03, false}, {64, 1, true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(strf("%lld bad, %g allowed", static_cast<long long>(row.bad), row.share));
    FakeDataset data(64, 5);
    for (int64_t i = 0; i < row.bad; ++i) data.broken.insert(63 - i);
    LoaderSettings settings = small_settings();
    settings.loader.on_error = OnError::kSkip;
    settings.loader.max_bad_fraction = row.share;
    auto loader = make_eval_loader(data, settings);
    if (row.passes)
      EXPECT_NO_THROW(take(*loader, 8));
    else
      EXPECT_THROW(take(*loader, 8), Error);
  }
}

// Whichever worker is done first, the error of the earliest sample is told.
TEST(LoaderErrors, OfSeveralBadSamplesTheFirstIsNamed) {
  class Slow : public FakeDataset {
   public:
    using FakeDataset::FakeDataset;
    Image load(int64_t index, int64_t side) const override {
      if (index == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return FakeDataset::load(index, side);
    }
  };
  Slow data(64, 5);
  data.broken = {1, 5};
  LoaderSettings settings = small_settings(4);
  settings.chunk = 1;
  EXPECT_NE(test::error_of([&] { make_eval_loader(data, settings)->next(); }).message().find("fake#1:"),
            std::string::npos);
}

TEST(LoaderErrors, RefusesALabelOutOfRange) {
  FakeDataset data(8, 5);
  data.set_labels(2, {5});
  auto loader = make_eval_loader(data, small_settings());
  const Error error = test::error_of([&] { loader->next(); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.message().find("fake#2 has label 5"), std::string::npos) << error.message();
}

TEST(LoaderErrors, RefusesSettingsThatDoNotFit) {
  const FakeDataset data(64, 5);
  const struct {
    const char* named;
    std::function<void(LoaderSettings&)> change;
  } cases[] = {
      {"workers", [](LoaderSettings& s) { s.loader.workers = -1; }},
      {"prefetch", [](LoaderSettings& s) { s.loader.prefetch = 0; }},
      {"max_bad_fraction", [](LoaderSettings& s) { s.loader.max_bad_fraction = 2; }},
      {"micro-batch", [](LoaderSettings& s) { s.micro_batch = 0; }},
      {"accumulation", [](LoaderSettings& s) { s.accumulation = 0; }},
      {"first row", [](LoaderSettings& s) { s.first_row = 1; }},
      {"all ranks", [](LoaderSettings& s) { s.global_batch = s.micro_batch - 1; }},
      {"channels", [](LoaderSettings& s) { s.channels = 4; }},
      {"5 classes", [](LoaderSettings& s) { s.classes = 4; }},
      {"smoothing", [](LoaderSettings& s) { s.smoothing = 1; }},
      {"mix_group 16", [](LoaderSettings& s) { s.augment.mixup = 1; }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.named);
    LoaderSettings settings = small_settings();
    c.change(settings);
    const Error error = test::error_of([&] { make_train_loader(data, settings); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find(c.named), std::string::npos) << error.message();
  }
  LoaderSettings settings = small_settings();
  settings.augment.mixup = 1;  // in groups of 16
  for (const auto& [micro_batch, hint] : {std::pair{8, "mix_group=8,"},
                                          {18, "mix_group=6,"},
                                          {10, "mix_group=10,"},
                                          {7, "an even micro-batch"}}) {
    settings.micro_batch = micro_batch;
    const Error error = test::error_of([&] { make_train_loader(data, settings); });
    EXPECT_NE(error.hint().find(hint), std::string::npos) << error.hint();
  }
}

}  // namespace
}  // namespace vitrail
