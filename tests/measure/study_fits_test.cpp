// The laws of scaling on points made by them, and on points that no law makes.
#include "measure/study/fits.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vitrail {
namespace {

TEST(StudyFits, AmdahlFindsTheShareThatMadeThePoints) {
  for (const double share : {0.0, 0.02, 0.3, 1.0, -0.05}) {  // below 0: faster than ideal
    std::vector<ScalingPoint> times;
    for (const double n : {1.0, 2.0, 4.0, 16.0}) times.push_back({n, 8.0 * (share + (1 - share) / n)});
    const auto fit = fit_amdahl(times);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->serial_share, share, 1e-12);
    EXPECT_NEAR(fit->error, 0, 1e-12);
    EXPECT_EQ(fit->most_speedup(), share > 0 ? 1 / fit->serial_share : INFINITY);
  }
}

TEST(StudyFits, AmdahlNeedsOneRankAndAnother) {
  EXPECT_FALSE(fit_amdahl({}));
  EXPECT_FALSE(fit_amdahl({{1, 5}}));
  EXPECT_FALSE(fit_amdahl({{2, 5}, {4, 3}}));
  EXPECT_FALSE(fit_amdahl({{1, 0}, {2, 3}}));
}

TEST(StudyFits, GustafsonFindsTheShareThatMadeThePoints) {
  for (const double share : {0.0, 0.1, 0.5}) {
    std::vector<ScalingPoint> speedups;
    for (const double n : {1.0, 2.0, 8.0}) speedups.push_back({n, share + n * (1 - share)});
    EXPECT_NEAR(fit_gustafson(speedups)->serial_share, share, 1e-12);
  }
  EXPECT_FALSE(fit_gustafson({{1, 1}}));
}

TEST(StudyFits, ErrorsAreTold) {
  const auto fit = fit_amdahl({{1, 1}, {2, 0.8}, {4, 0.3}});
  EXPECT_NEAR(fit->serial_share, 0.1875 / 0.8125, 1e-12);
  EXPECT_NEAR(fit->error, 0.12810,
              1e-5);  // by hand: 0.18462 too low for two ranks, 0.12308 too high for four
}

TEST(StudyFits, ASlowMessageIsAnErrorAsAQuickOneIs) {
  const std::vector<MessageTime> times = {{1e3, 1}, {2e3, 1}, {3e3, 1}, {4e3, 3}};
  const auto fit = fit_latency(times);
  EXPECT_NEAR(fit->error, 1 - fit->seconds(4e3) / 3, 1e-12);
  EXPECT_GT(fit->error, 0.4);
}

TEST(StudyFits, LatencyAndBandwidthOfMessages) {
  const auto made = [](double alpha, double beta) {
    std::vector<MessageTime> times;
    for (const double bytes : {1e3, 1e5, 1e7, 1e8}) times.push_back({bytes, alpha + beta * bytes});
    return fit_latency(times);
  };
  const auto fit = made(5e-5, 1e-9);
  EXPECT_NEAR(fit->alpha_s, 5e-5, 1e-12);
  EXPECT_NEAR(fit->bytes_per_s(), 1e9, 1);
  EXPECT_NEAR(fit->error, 0, 1e-6);
  EXPECT_EQ(made(0, 1e-9)->alpha_s >= 0, true);
  EXPECT_FALSE(fit_latency({}));
  EXPECT_FALSE(fit_latency({{1e6, 1}}));
  EXPECT_FALSE(fit_latency({{1e6, 1}, {1e6, 1.1}}));
  EXPECT_FALSE(fit_latency({{1e3, 0}, {1e6, 1}}));
  // Times that shrink with the size have no bandwidth, and neither number is below 0.
  const auto odd = fit_latency({{1e3, 2}, {1e6, 1}});
  EXPECT_GE(odd->alpha_s, 0);
  EXPECT_EQ(odd->beta_s_per_byte, 0);
  EXPECT_EQ(odd->bytes_per_s(), 0);
}

}  // namespace
}  // namespace vitrail
