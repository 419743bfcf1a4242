#include "telemetry/rate_meter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vitrail {
namespace {

using Time = RateMeter::Time;

Time at(double seconds) {
  return Time{} +
         std::chrono::duration_cast<RateMeter::Clock::duration>(std::chrono::duration<double>(seconds));
}

TEST(RateMeter, KnowsNothingBeforeTheFirstStep) {
  const RateMeter meter(at(0));
  EXPECT_TRUE(std::isnan(meter.images_per_second()));
  EXPECT_TRUE(std::isnan(meter.eta_seconds(100)));
}

TEST(RateMeter, FollowsTheLastWindow) {
  RateMeter meter(at(100), 10);
  double now = 100;
  for (int i = 0; i < 200; ++i) meter.step(8, at(now += 0.5));
  EXPECT_NEAR(meter.images_per_second(), 16, 1e-6);
  EXPECT_NEAR(meter.steps_per_second(), 2, 1e-6);
  EXPECT_NEAR(meter.eta_seconds(10), 5, 1e-6);
  for (int i = 0; i < 200; ++i) meter.step(8, at(now += 0.125));
  EXPECT_NEAR(meter.images_per_second(), 64, 1e-6);
}

TEST(RateMeter, StepsLongerThanTheWindowStillCount) {
  RateMeter meter(at(0), 10);
  meter.step(8, at(60));
  EXPECT_NEAR(meter.images_per_second(), 8.0 / 60, 1e-9);
  meter.step(8, at(100));
  EXPECT_NEAR(meter.images_per_second(), 8.0 / 40, 1e-9);
}

TEST(RateMeter, PausesLowerNoRateButAreExpectedAgain) {
  RateMeter meter(at(0), 1000);
  double now = 0;
  for (int i = 0; i < 10; ++i) meter.step(4, at(now += 1));
  now += 5;  // an evaluation
  meter.pause(5);
  for (int i = 0; i < 10; ++i) meter.step(4, at(now += 1));
  EXPECT_NEAR(meter.images_per_second(), 4, 1e-9);
  EXPECT_NEAR(meter.eta_seconds(20), 25, 1e-9);
}

TEST(RateMeter, WhatIsOlderThanTheWindowIsForgotten) {
  RateMeter meter(at(0), 10);
  double now = 0;
  for (int i = 0; i < 100; ++i) meter.step(8, at(now += 0.5));
  for (int i = 0; i < 88; ++i) meter.step(8, at(now += 0.125));  // eleven seconds
  EXPECT_NEAR(meter.images_per_second(), 64, 1e-6);
  EXPECT_NEAR(meter.eta_seconds(80), 10, 1e-6);
}

}  // namespace
}  // namespace vitrail
