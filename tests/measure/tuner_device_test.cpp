// How kernels are measured on a device that records, with a synthetic one whose clock is the test's: how many
// launches a recording has, in how much memory, and the rates that follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/cpu/kernels.h"
#include "backend/wrapped_device.h"
#include "measure/calibrate.h"
#include "measure/tuner_gpu.h"
#include "ops/linear.h"
#include "squeezed.h"
#include "thrown.h"

namespace vitrail {
namespace {

// What kernels of the test have done; a recording is of what was launched within it.
struct Launches {
  int recorded = 0;
  double seconds_each = 0;
  bool recording = false;
};
Launches& launches() {
  static Launches all;
  return all;
}

template <int micros>
void takes_micros(const KernelArgs&) {
  launches().recorded += launches().recording ? 1 : 0;
  launches().seconds_each = micros * 1e-6;
}
void refuses(const KernelArgs&) {
  throw Error(ErrorKind::kDevice, "not this one");
}

Kernel made_kernel(const char* name, RunKernel run) {
  return {.name = name,
          .declines = [](const NodeView&, const DeviceInfo&) { return std::string(); },
          .prepare = unprepared(run)};
}

// A replay takes what its launches would.
class ClockDevice : public WrappedDevice {
 public:
  std::byte* allocate(size_t bytes) override {
    allocations.push_back(bytes);
    return WrappedDevice::allocate(bytes);
  }
  bool records() const override { return true; }
  void start_recording() override { launches() = {.recorded = 0, .recording = true}; }
  std::unique_ptr<Recording> end_recording() override {
    launches().recording = false;
    recorded.push_back(launches().recorded);
    return spoilt ? nullptr : std::make_unique<Timed>(clock_, launches().recorded * launches().seconds_each);
  }
  std::unique_ptr<Timestamp> create_timestamp() override { return std::make_unique<Time>(); }
  void stamp(Timestamp& time) override { dynamic_cast<Time&>(time).at = clock_; }
  std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) override {
    return dynamic_cast<const Time&>(to).at - dynamic_cast<const Time&>(from).at;
  }

  std::vector<size_t> allocations;
  std::vector<int> recorded;  // launches of each recording
  bool spoilt = false;

 private:
  struct Time : Timestamp {
    double at = 0;
  };
  class Timed : public Recording {
   public:
    Timed(double& clock, double seconds) : clock_(clock), seconds_(seconds) {}
    void replay() override { clock_ += seconds_; }

   private:
    double& clock_;
    double seconds_;
  };
  double clock_ = 0;
};

// x [3 D5] and w [F7 D5] in f32: 60 and 140 bytes, and 84 of the result; each begins at a multiple of 256.
PlannedGemm made_gemm(std::vector<const Kernel*> kernels) {
  const auto op = std::make_shared<LinearOp>();
  const std::vector<TensorDesc> ins = {{DType::kF32, {{'B', 3}, {'D', 5}}},
                                       {DType::kF32, {{'F', 7}, {'D', 5}}}};
  return {{.op = "linear f32", .m = 3, .n = 7, .k = 5}, op, ins, op->infer(ins), std::move(kernels), 4};
}

TEST(TuneDevice, RecordingsOutgrowTheCache) {
  const Kernel kernel = made_kernel("usual", takes_micros<10>);
  const struct {
    size_t l2_bytes, sets;
    int launches;
  } rows[] = {{0, 1, 16},
              {383, 1, 16},
              {384, 2, 16},
              {768 * 8, 17, 17},
              {768 * 8 - 1, 16, 16},
              {768 * 31, 63, 63},
              {768 * 32, 64, 64},
              {size_t{1} << 30, 64, 64}};
  for (const auto& row : rows) {
    ClockDevice device;
    DeviceInfo info = cpu_device(1);
    info.l2_bytes = row.l2_bytes;
    const std::vector<KernelSpeed> speeds = measure_kernels(made_gemm({&kernel}), info, device, 3);
    EXPECT_EQ(std::count(device.allocations.begin(), device.allocations.end(), 768u),
              static_cast<std::ptrdiff_t>(row.sets))
        << row.l2_bytes;
    EXPECT_EQ(device.recorded, std::vector<int>{row.launches}) << row.l2_bytes;
    ASSERT_EQ(speeds.size(), 1u);
    // 2 x 3x7x5 operations in 10 us.
    EXPECT_NEAR(speeds[0].gflops, 210 / 10e-6 / 1e9, 1e-9) << row.l2_bytes;
  }
  // A GEMM of nothing has no memory to outgrow it with, and is launched all the same.
  ClockDevice device;
  DeviceInfo info = cpu_device(1);
  info.l2_bytes = 15;
  PlannedGemm nothing = made_gemm({&kernel});
  nothing.ins.clear(), nothing.outs.clear();
  measure_kernels(nothing, info, device, 1);
  EXPECT_EQ(device.recorded, std::vector<int>{31});
}

TEST(TuneDevice, KernelsThatRefuseAreLeftOut) {
  const Kernel usual = made_kernel("usual", takes_micros<10>), other = made_kernel("other", takes_micros<5>),
               none = made_kernel("none", refuses);
  ClockDevice device;
  const std::vector<KernelSpeed> speeds =
      measure_kernels(made_gemm({&usual, &none, &other}), cpu_device(1), device, 2);
  ASSERT_EQ(speeds.size(), 2u);
  EXPECT_EQ(speeds[0].kernel, "usual");
  EXPECT_EQ(speeds[1].kernel, "other");
  EXPECT_NEAR(speeds[1].gflops, 2 * speeds[0].gflops, 1e-9);
  EXPECT_EQ(thrown_by([&] {
              measure_kernels(made_gemm({&none, &usual}), cpu_device(1), device, 2);
            }),
            "device: not this one")
      << "the usual one must run";
  device.spoilt = true;
  EXPECT_EQ(thrown_by([&] { measure_kernels(made_gemm({&usual}), cpu_device(1), device, 2); }),
            "device: usual cannot be recorded");
}

TEST(TuneDevice, TheTableHasTheFasterKernel) {
  const Kernel usual = made_kernel("usual", takes_micros<10>), other = made_kernel("other", takes_micros<5>),
               slow = made_kernel("slow", takes_micros<20>);
  ClockDevice device;
  PlannedGemm first = made_gemm({&usual, &other}), second = made_gemm({&usual, &slow});
  first.key.m = 3'000'000, second.key.m = 300'000, second.nodes = 1;
  KernelTable kept;
  kept.set({{.op = "linear bf16", .m = 1, .n = 1, .k = 1}, {"kept"}});
  std::vector<std::string> told;
  const TunedGemms tuned = tune_gemms({first, second}, cpu_device(1), device, 2, kept,
                                      [&](const std::string& name) { told.push_back(name); });
  EXPECT_EQ(told, (std::vector<std::string>{"linear f32 3000000x7x5", "linear f32 300000x7x5"}));
  EXPECT_EQ(tuned.table.rows().size(), 3u) << "what was in it stays";
  EXPECT_EQ(*tuned.table.find(first.key), std::vector<std::string>{"other"});
  EXPECT_EQ(*tuned.table.find(second.key), std::vector<std::string>{"usual"});
  const std::string text = squeezed(tuned.text);
  EXPECT_TRUE(text.starts_with("GEMM m x n x k nodes usual, TFLOP/s fastest kernel\n")) << text;
  EXPECT_TRUE(
      text.ends_with("─\nlinear f32 3000000x7x5 4 21.0 42.0 other\n"
                     "linear f32 300000x7x5 1 2.1 2.1 usual\n"))
      << text;
  ASSERT_EQ(tuned.rows.size(), 2u);
  EXPECT_EQ(tuned.rows[0]["kernel"], "other");
  EXPECT_EQ(tuned.rows[0]["nodes"], 4);
  EXPECT_EQ(tuned.rows[1]["op"], "linear f32");
}

TEST(TuneDevice, NothingThatWasMeasuredIsAFault) {
  const std::string said = thrown_by([] { preferred({}); });
  EXPECT_TRUE(said.starts_with("internal: ")) << said;
  EXPECT_NE(said.find("no kernel was measured"), std::string::npos) << said;
}

// Rates of a device are kept in TFLOP/s: no thread of a processor reaches a hundred of them, and each has
// a thousandth of one.
TEST(MeasuredPeaks, AreInTeraflops) {
  DeviceInfo info = cpu_device(1);
  info.memory_bytes = 12345, info.compute = 90, info.processors = 7, info.l2_bytes = 11, info.name = "here";
  const std::unique_ptr<Device> device = open_device(info);
  const DeviceFile file = measure_peaks(info, *device);
  EXPECT_EQ(file.kind, "cpu");
  EXPECT_EQ(file.name, "here");
  EXPECT_EQ(file.memory_bytes, 12345u);
  EXPECT_EQ(file.foreign_bytes, 0u);
  const auto& gpu = std::get<GpuSpec>(file.spec);
  EXPECT_EQ(gpu.compute, 90);
  EXPECT_EQ(gpu.processors, 7);
  EXPECT_EQ(gpu.l2_bytes, 11u);
  EXPECT_GT(gpu.copy_gbps, 0);
  ASSERT_TRUE(gpu.tflops.contains("f32"));
  for (const auto& [type, tflops] : gpu.tflops) {
    EXPECT_GT(tflops, 1e-4) << type;
    EXPECT_LT(tflops, 100) << type;
  }
}

}  // namespace
}  // namespace vitrail
