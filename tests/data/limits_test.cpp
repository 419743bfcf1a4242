// Settings of data at both ends of what is allowed and one beyond, and what is said of each.
#include <gtest/gtest.h>

#include "data/augment/augment_config.h"
#include "data/augment/policy.h"
#include "data/data_config.h"
#include "data/fake_dataset.h"
#include "data/loader_helpers.h"
#include "data/said_by.h"

namespace vitrail {
namespace {

using test::FakeDataset;
using test::said_by;

TEST(AugmentLimits, BothEndsAreAllowedAndNothingBeyond) {
  using C = AugmentConfig;
  struct Row {
    const char* key;
    void (*set)(C&, double);
    double low, high, step;  // step: to what is just beyond
  };
  const Row rows[] = {
      {"pad", [](C& c, double v) { c.pad = static_cast<int64_t>(v); }, 0, 1024, 1},
      {"hflip", [](C& c, double v) { c.hflip = v; }, 0, 1, 0.001},
      {"vflip", [](C& c, double v) { c.vflip = v; }, 0, 1, 0.001},
      {"colour_jitter_prob", [](C& c, double v) { c.colour_jitter_prob = v; }, 0, 1, 0.001},
      {"grayscale", [](C& c, double v) { c.grayscale = v; }, 0, 1, 0.001},
      {"blur", [](C& c, double v) { c.blur = v; }, 0, 1, 0.001},
      {"erase", [](C& c, double v) { c.erase = v; }, 0, 1, 0.001},
      {"erase_count", [](C& c, double v) { c.erase_count = static_cast<int64_t>(v); }, 1, 100, 1},
      {"mix_prob", [](C& c, double v) { c.mix_prob = v; }, 0, 1, 0.001},
      {"mix_switch", [](C& c, double v) { c.mix_switch = v; }, 0, 1, 0.001},
      {"mix_group", [](C& c, double v) { c.mix_group = static_cast<int64_t>(v); }, 2, 4096, 2},
      {"repeats", [](C& c, double v) { c.repeats = static_cast<int64_t>(v); }, 1, 64, 1},
      {"mixup", [](C& c, double v) { c.mixup = v; }, 0.001, 1000, 0.0005},
      {"cutmix", [](C& c, double v) { c.cutmix = v; }, 0.001, 1000, 0.0005},
      {"colour_jitter[0]", [](C& c, double v) { c.colour_jitter = {v}; }, 0, 100, 0.001},
      {"colour_jitter[3]",
       [](C& c, double v) {
         c.colour_jitter = {0, 0, 0, v};
       },
       0, 0.5, 0.001},
  };
  for (const Row& row : rows)
    for (const double value : {row.low - row.step, row.low, row.high, row.high + row.step}) {
      C config;
      row.set(config, value);
      const std::string said = said_by([&] { validate(config); });
      EXPECT_EQ(said.empty(), value >= row.low && value <= row.high)
          << row.key << " " << value << ": " << said;
      EXPECT_TRUE(said.empty() || said.find(strf("config: augment.%s is ", row.key)) == 0) << said;
    }
  C off;
  off.mixup = off.cutmix = 0;
  EXPECT_EQ(said_by([&] { validate(off); }), "");
}

TEST(AugmentLimits, RangesAndCounts) {
  using Range = std::vector<double>;
  const auto said = [](void (*set)(AugmentConfig&, const Range&), const Range& range) {
    AugmentConfig config;
    set(config, range);
    return said_by([&] { validate(config); });
  };
  const auto scale = [](AugmentConfig& c, const Range& r) { c.crop_scale = r; };
  const auto ratio = [](AugmentConfig& c, const Range& r) { c.crop_ratio = r; };
  const auto sigma = [](AugmentConfig& c, const Range& r) { c.blur_sigma = r; };
  const auto area = [](AugmentConfig& c, const Range& r) { c.erase_area = r; };
  const auto jitter = [](AugmentConfig& c, const Range& r) { c.colour_jitter = r; };
  EXPECT_EQ(said(scale, {1e-6, 1}), "");
  EXPECT_EQ(said(scale, {0, 1}),
            "config: augment.crop_scale is [0, 1]: expected 1e-06 <= least <= most <= 1");
  EXPECT_EQ(said(scale, {0.5, 1.1}),
            "config: augment.crop_scale is [0.5, 1.1]: expected 1e-06 <= least <= most <= 1");
  EXPECT_EQ(said(scale, {0.5, 0.5}), "");
  EXPECT_NE(said(scale, {0.6, 0.5}), "");
  EXPECT_EQ(said(scale, {0.5}), "config: augment.crop_scale has 1 values: expected two, [least, most]");
  EXPECT_EQ(said(ratio, {1e-3, 1e3}), "");
  EXPECT_NE(said(ratio, {0.9e-3, 1}), "");
  EXPECT_NE(said(ratio, {1, 1001}), "");
  EXPECT_EQ(said(sigma, {0, 100}), "");
  EXPECT_NE(said(sigma, {0, 100.1}), "");
  EXPECT_NE(said(sigma, {-0.1, 1}), "");
  EXPECT_EQ(said(area, {1e-6, 1}), "");
  EXPECT_NE(said(area, {0, 1}), "");
  EXPECT_NE(said(area, {0.1, 1.1}), "");
  EXPECT_EQ(said(jitter, {}), "");
  EXPECT_EQ(said(jitter, {1, 1, 1}), "");
  EXPECT_NE(said(jitter, {1, 1}).find("colour_jitter has 2 values"), std::string::npos);
  EXPECT_NE(said(jitter, {1, 1, 1, 0.1, 0}).find("colour_jitter has 5 values"), std::string::npos);
  AugmentConfig odd;
  odd.mix_group = 3;
  EXPECT_EQ(said_by([&] { validate(odd); }),
            "config: augment.mix_group is 3: expected an even number, since samples are mixed in pairs");
}

TEST(PolicyLimits, CodesAtBothEnds) {
  const std::pair<const char*, const char*> rows[] = {
      {"rand-m10", ""},
      {"rand-m10.5", "m is 10.5, expected 0..10"},
      {"rand-m100-mmax100", ""},
      {"rand-m101-mmax100", "m is 101, expected 0..100"},
      {"rand-mmax0.5", "mmax is 0.5, expected 1..100"},
      {"rand-mmax1", ""},
      {"rand-mmax101", "mmax is 101, expected 1..100"},
      {"rand-n1", ""},
      {"rand-n0", "n is 0, expected a whole number in 1..32"},
      {"rand-n32", ""},
      {"rand-n33", "n is 33, expected a whole number in 1..32"},
      {"rand-n1.5", "n is 1.5, expected a whole number in 1..32"},
      {"rand-p1", ""},
      {"rand-p1.1", "p is 1.1, expected 0..1"},
      {"rand-inc2", "inc is 2, expected a whole number in 0..1"},
      {"torchvision-m30", ""},
      {"torchvision-m31", "m is 31, expected 0..30"},
      {"torchvision-inc1", "\"inc\" is not known here"},
      {"torchvision-mmax9", "\"mmax\" is not known here"},
      {"original-mstd0.5", ""},
      {"original-m9", "\"m\" is not known here"},
      {"rand-9", "\"\" is not known here"},
      {"rand-mx", "\"mx\" is not a letter code and a number"},
      {"rand-m9x", "\"m9x\" is not a letter code and a number"},
      {"other", "no policy is called \"other\""},
      {"none", ""},
  };
  for (const auto& [text, reason] : rows) {
    const std::string said = said_by([&, t = text] { parse_policy(t); });
    EXPECT_EQ(said, *reason ? strf("config: augment.policy \"%s\": %s", text, reason) : "");
  }
  const Policy rand = parse_policy("rand-m7-mstd0.5-n3-p0.25-inc1"),
               torchvision = parse_policy("torchvision");
  EXPECT_EQ(rand.magnitude, 7);
  EXPECT_EQ(rand.magnitude_deviation, 0.5);
  EXPECT_EQ(rand.layers, 3);
  EXPECT_EQ(rand.probability, 0.25);
  EXPECT_EQ(rand.scale, LevelScale::kIncreasing);
  EXPECT_EQ(torchvision.magnitude, 9);
  EXPECT_EQ(torchvision.magnitude_most, 30);
  EXPECT_EQ(torchvision.probability, 1);
}

TEST(LoaderLimits, BothEndsAreAllowedAndNothingBeyond) {
  using S = LoaderSettings;
  const FakeDataset data(4, 1);
  struct Row {
    const char* what;
    void (*set)(S&, int64_t);
    int64_t low, high;
  };
  const Row rows[] = {
      {"loader.workers", [](S& s, int64_t v) { s.loader.workers = v; }, 0, 1024},
      {"loader.prefetch", [](S& s, int64_t v) { s.loader.prefetch = v; }, 1, 64},
      {"the micro-batch", [](S& s, int64_t v) { s.micro_batch = v; }, 1, 1 << 20},
      {"the samples a worker takes", [](S& s, int64_t v) { s.chunk = v; }, 1, 1 << 20},
      {"the number of classes", [](S& s, int64_t v) { s.classes = v; }, 1, 1 << 24},
      {"the image's height", [](S& s, int64_t v) { s.preprocess.height = v; }, 1, 65536},
      {"the image's width", [](S& s, int64_t v) { s.preprocess.width = v; }, 1, 65536},
      {"the micro-batch of all ranks", [](S& s, int64_t v) { s.global_batch = v; }, 8, 1 << 20},
      {"the first row of this rank", [](S& s, int64_t v) { s.global_batch = 20, s.first_row = v; }, 0, 12},
      {"accumulation", [](S& s, int64_t v) { s.accumulation = v; }, 1, 1 << 20},
  };
  for (const Row& row : rows)
    for (const int64_t value : {row.low - 1, row.low, row.high, row.high + 1}) {
      S settings = test::small_settings();
      row.set(settings, value);
      const bool allowed = value >= row.low && value <= row.high;
      const std::string said = said_by([&] { validate(settings, data, Purpose::kTrain); });
      EXPECT_EQ(said, allowed ? ""
                              : strf("config: %s is %lld: expected %lld..%lld", row.what,
                                     static_cast<long long>(value), static_cast<long long>(row.low),
                                     static_cast<long long>(row.high)));
    }
  S settings = test::small_settings();
  const auto said = [&] { return said_by([&] { validate(settings, data, Purpose::kTrain); }); };
  for (const auto& [share, allowed] : {std::pair{0.0, true}, {1.0, true}, {1.01, false}, {-0.01, false}}) {
    settings.loader.max_bad_fraction = share;
    EXPECT_EQ(said().empty(), allowed) << share;
  }
  settings = test::small_settings();
  settings.channels = 1;
  EXPECT_EQ(said(), "");
  settings = test::small_settings();
  settings.smoothing = -0.1;
  EXPECT_EQ(said(), "config: label smoothing is -0.1: expected 0 or more and less than 1");
  EXPECT_EQ(said_by([&] { validate(settings, data, Purpose::kEval); }), "") << "evaluation smooths nothing";
}

TEST(DataLimits, SharesAtBothEnds) {
  const auto said = [](double val, double fraction) {
    return said_by([&] { validate(DataConfig{.train = "x", .val_fraction = val, .fraction = fraction}); });
  };
  EXPECT_EQ(said(0, 1), "");
  EXPECT_EQ(said(-0.1, 1), "config: data.val_fraction is -0.1: expected at least 0 and less than 1");
  EXPECT_EQ(said(0.99, 1e-9), "");
  EXPECT_EQ(said(0.1, -1), "config: data.fraction is -1: expected more than 0 and at most 1");
}

}  // namespace
}  // namespace vitrail
