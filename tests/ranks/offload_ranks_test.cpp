// Ranks whose parameters lie on the host, on devices whose copies take their time.
#include "backend/cpu/kernels.h"
#include "device_meshes.h"
#include "train/helpers/queue_device.h"

namespace vitrail::testing {
namespace {

// Copies that happen as late as they may; two and three ranks, and one that has all.
TEST(DeviceOffload, ParametersComeFromTheHostInTime) {
  DeviceInfo apart = cpu_device(1);
  apart.shares_host_memory = false;
  const MeshDevices late{
      .backend = &cpu_backend(), .info = apart, .open = [] { return std::make_unique<QueueDevice>(); }};
  for (const int ranks : {1, 2, 3}) {
    const auto outcome = [&](Offload offload, const MeshDevices& devices) {
      MeshCase c{"offload", {ranks, 1, 1}, [=](StepConfig& s) { s.zero = 3, s.offload = offload; }, 2};
      MeshOutcome many = run_mesh(c, DType::kF32, 3, devices);
      EXPECT_EQ(many.planned, many.allocated) << ranks << " ranks";
      return many;
    };
    const MeshOutcome kept = outcome(Offload::kOptimizer, late);
    for (const MeshDevices& devices : {late, MeshDevices{}}) {
      const MeshOutcome found = outcome(Offload::kParameters, devices);
      EXPECT_TRUE(found.values == kept.values) << ranks << " ranks, weights and averages";
      EXPECT_TRUE(found.logits == kept.logits) << ranks << " ranks, an evaluation of the averages";
      ASSERT_GT(found.values.size(), 20u);
    }
  }
}

}  // namespace
}  // namespace vitrail::testing
