// The host as a device: what measurements are filled with, and how work is recorded.
#include "backend/device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/wrapped_device.h"
#include "tensor/narrow.h"
#include "thrown.h"

namespace vitrail {
namespace {

// Values of any type that a device is measured in, as floats.
std::vector<float> filled(DType dtype, size_t elems) {
  const std::unique_ptr<Device> host = open_host_device();
  const size_t bytes = elems * size_of(dtype);
  constexpr size_t kGuards = 64;
  std::vector<std::byte> memory(bytes + kGuards, std::byte{0x5a});
  fill_for_timing(*host, memory.data(), dtype, elems);
  EXPECT_TRUE(std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(bytes), memory.end(), [](std::byte b) {
    return b == std::byte{0x5a};
  })) << "nothing beyond it is written";
  std::vector<float> values(elems);
  if (dtype == DType::kU8)
    for (size_t i = 0; i < elems; ++i) values[i] = e4m3_to_f32(static_cast<uint8_t>(memory[i]));
  else
    convert_floats(memory.data(), dtype, values.data(), DType::kF32, elems);
  return values;
}

TEST(FilledForTiming, TheSameNumbersInEveryType) {
  const std::vector<float> wide = filled(DType::kF32, 1000);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -0.9f);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 0.9f);
  const struct {
    DType dtype;
    float apart;  // half a unit in the last place of numbers below 1
  } rows[] = {{DType::kF64, 0}, {DType::kF16, 0x1p-12f}, {DType::kBF16, 0x1p-9f}, {DType::kU8, 0x1p-5f}};
  for (const auto& row : rows) {
    const std::vector<float> found = filled(row.dtype, 1000);
    for (size_t i = 0; i < wide.size(); ++i) {
      ASSERT_GE(wide[i], -1);
      ASSERT_LT(wide[i], 1);
      ASSERT_NEAR(found[i], wide[i], row.apart) << to_string(row.dtype) << " " << i;
    }
  }
}

// Beyond the first 2^18 the numbers repeat, to the last one of any length.
TEST(FilledForTiming, LongOnesRepeat) {
  constexpr size_t kDrawn = size_t{1} << 18;
  for (const size_t elems : {size_t{0}, size_t{1}, kDrawn, kDrawn + 1, 2 * kDrawn, 5 * kDrawn + 7}) {
    const std::vector<float> found = filled(DType::kBF16, elems);
    ASSERT_EQ(found.size(), elems);
    for (size_t i = kDrawn; i < elems; ++i) ASSERT_EQ(found[i], found[i % kDrawn]) << elems << " " << i;
  }
}

// A device that records; an end may fail, or give nothing.
class RecorderDevice : public WrappedDevice {
 public:
  void start_recording() override { ++open; }
  std::unique_ptr<Recording> end_recording() override {
    --open;
    if (fails) throw Error(ErrorKind::kDevice, "the end failed");
    return spoilt ? nullptr : std::make_unique<Empty>();
  }
  int open = 0;
  bool spoilt = false, fails = false;

 private:
  struct Empty : Recording {
    void replay() override {}
  };
};

TEST(Recordings, EndWhateverHappensInThem) {
  const auto quiet = [] {};
  const auto loud = [] { throw Error(ErrorKind::kUsage, "a launch failed"); };
  const struct {
    bool fails, spoilt, loud, recorded;
    const char* thrown;
  } rows[] = {{false, false, false, true, "nothing"},
              {false, true, false, false, "nothing"},
              {true, false, false, false, "device: the end failed"},
              {false, false, true, false, "usage: a launch failed"},
              {false, true, true, false, "nothing"},
              {true, false, true, false, "usage: a launch failed"}};
  for (const auto& row : rows) {
    RecorderDevice device;
    device.fails = row.fails, device.spoilt = row.spoilt;
    std::unique_ptr<Recording> recording;
    EXPECT_EQ(thrown_by([&] { recording = row.loud ? record(device, loud) : record(device, quiet); }),
              row.thrown);
    EXPECT_EQ(recording != nullptr, row.recorded);
    EXPECT_EQ(device.open, 0) << "the device is not left recording";
  }
}

}  // namespace
}  // namespace vitrail
