// Readings of GPUs by a library that stands in for the driver's own.
#include "measure/study/gpu_readings.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <thread>

#include "nvml/fake_nvml.h"

namespace vitrail {
namespace {

// Opens the stand-in, which is then found by its name; every test begins with it as it is made.
FakeNvml& made_up_gpus() {
  static FakeNvml& state = [&]() -> FakeNvml& {
    void* library = ::dlopen(VT_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    return *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml"))();
  }();
  state = {};
  return state;
}

std::vector<int64_t> ids_of(const GpuReadings& readings) {
  std::vector<int64_t> ids;
  for (const GpuReading& one : readings.result()) ids.push_back(one.id);
  return ids;
}

TEST(GpuReadings, OfGpusThatTheLibraryGives) {
  FakeNvml& state = made_up_gpus();
  EXPECT_EQ(ids_of(GpuReadings()), (std::vector<int64_t>{0, 1}));
  state.handle[0] = 1;
  EXPECT_EQ(ids_of(GpuReadings()), (std::vector<int64_t>{1})) << "one that cannot be had is left out";
  state = {};
  state.name = 1;
  EXPECT_EQ(GpuReadings().result().at(1).name, "") << "without a name it is read all the same";
  state = {};
  state.gpus = 0;
  EXPECT_FALSE(GpuReadings().usable());
  state = {};
  state.init = 1;
  EXPECT_FALSE(GpuReadings().usable()) << "the library does not start";
  state = {};
  state.count = 1;
  EXPECT_FALSE(GpuReadings().usable()) << "nor does it say how many there are";
}

TEST(GpuReadings, MeansAndHighestOfWhatWasRead) {
  FakeNvml& state = made_up_gpus();
  GpuReadings readings;
  ASSERT_TRUE(readings.usable());
  EXPECT_TRUE(std::isnan(readings.result()[0].load)) << "nothing was read yet";
  readings.start();
  readings.read();
  readings.read();
  EXPECT_EQ(state.reads, 2) << "both GPUs once: the second time was a moment later";
  const std::vector<GpuReading> first = readings.result();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].name, "GPU of the test, 1");
  EXPECT_EQ(first[1].total_bytes, 1000);
  EXPECT_EQ(first[1].used_bytes, 20);
  EXPECT_EQ(first[1].load, 0.75);
  EXPECT_EQ(first[1].temperature, 50);
  EXPECT_EQ(first[1].watts, 2);
  state.used[1] = 15, state.load[1] = 25, state.degrees[1] = 60, state.milliwatts[1] = 4000;
  std::this_thread::sleep_for(std::chrono::milliseconds(510));
  readings.read();
  const GpuReading both = readings.result()[1];
  EXPECT_EQ(both.used_bytes, 20) << "the most";
  EXPECT_EQ(both.load, 0.5) << "the mean";
  EXPECT_EQ(both.temperature, 60) << "the highest";
  EXPECT_EQ(both.watts, 3) << "the mean";
  readings.start();
  EXPECT_TRUE(std::isnan(readings.result()[1].load)) << "forgotten";
  EXPECT_EQ(readings.result()[1].name, "GPU of the test, 1");
  readings.read();
  EXPECT_EQ(readings.result()[1].load, 0.25) << "at once";
}

// What the driver does not tell stays unknown, and the rest is known.
TEST(GpuReadings, WhatIsNotToldIsUnknown) {
  for (const auto& [call, number] : {std::pair{&FakeNvml::memory, &GpuReading::used_bytes},
                                     {&FakeNvml::memory, &GpuReading::total_bytes},
                                     {&FakeNvml::use, &GpuReading::load},
                                     {&FakeNvml::temperature, &GpuReading::temperature},
                                     {&FakeNvml::power, &GpuReading::watts}}) {
    FakeNvml& state = made_up_gpus();
    state.*call = 3;
    GpuReadings readings;
    readings.read();
    const GpuReading found = readings.result().at(0);
    EXPECT_TRUE(std::isnan(found.*number));
    int known = 0;
    for (const double one : {found.used_bytes, found.total_bytes, found.load, found.temperature, found.watts})
      known += std::isnan(one) ? 0 : 1;
    EXPECT_EQ(known, call == &FakeNvml::memory ? 3 : 4);
  }
}

}  // namespace
}  // namespace vitrail
