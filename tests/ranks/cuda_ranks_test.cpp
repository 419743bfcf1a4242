// Ranks as threads that share a GPU, or have one each: the same training run as one rank, staged through the
// host and by NCCL, recorded and not, twice. The tests over NCCL are run by bench/gpu_ranks.sh, which brings
// the library.
#include <cstdlib>

#include "cuda_test.h"
#include "device_meshes.h"
#include "dist/nccl/device_ranks.h"
#include "dist/nccl_world.h"
#include "dist/ranks.h"
#include "gpu_mesh.h"
#include "runtime/collective_runners.h"

namespace vitrail {
namespace {

std::string nccl_problem() {
  if (std::string problem = cuda_report().problem; !problem.empty()) return problem;
  const NcclReport nccl = nccl_report([](const char* name) { return std::getenv(name); });
  if (!nccl.problem.empty()) return nccl.problem;
  return nccl.shares_gpus ? ""
                          : "needs NCCL 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1 for several ranks on one GPU";
}

class CudaStagedRanks : public CudaTest {};

TEST_F(CudaStagedRanks, LossesOfOneRank) {
  for (const MeshCase& c : device_meshes(2)) {
    const MeshOutcome many = expect_losses_of_one_rank(c, on_gpu(MeshTransport::kStaged));
    ASSERT_FALSE(HasFailure()) << c.name;
    EXPECT_GT(many.recordings, 0u) << c.name;
    EXPECT_EQ(many.locked, many.planned_locked) << c.name;
  }
}

class NcclOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string problem = nccl_problem(); !problem.empty()) GTEST_SKIP() << problem;
  }
};

// The memory of one rank on the GPU, and the way there and back. Allocated before ranks wait for each other.
class Passage {
 public:
  explicit Passage(int rank)
      : device_(open_cuda_device(gpu_of(rank))), stream_(device_->create_urgent_stream()) {
    for (Buffer& one : memory_) one = Buffer(kBytes, Category::kCommunication, device_.get());
  }
  Device& device() { return *device_; }

  void perform(DeviceCommunicator& devices, Collective c) {
    const MovedBytes moved = moved_by(c, devices.rank());
    auto* const in = static_cast<char*>(const_cast<void*>(c.in));
    auto* const out = static_cast<char*>(c.out);
    // Where input and output overlap on the host they do so on the GPU.
    const bool overlap = moved.in > 0 && moved.out > 0 && in < out + moved.out && out < in + moved.in;
    char* const low = overlap ? std::min(in, out) : nullptr;
    std::byte* const gpu_in = memory_[0].data() + (overlap ? in - low : 0);
    std::byte* const gpu_out = overlap ? memory_[0].data() + (out - low) : memory_[1].data();
    if (moved.in > 0) device_->upload(gpu_in, in, moved.in);
    if (moved.out > 0) device_->upload(gpu_out, out, moved.out);
    device_->finish();
    c.in = gpu_in, c.out = gpu_out;
    devices.enqueue(c, stream_->handle());
    device_->finish();
    if (moved.out > 0) device_->download(out, gpu_out, moved.out);
    devices.check();
  }

 private:
  static constexpr size_t kBytes = size_t{32} << 20;

  static MovedBytes moved_by(const Collective& c, int rank) {
    const size_t bytes = c.counts[0] * size_of(c.dtype);
    if (c.kind == Collective::Kind::kBroadcast || c.kind == Collective::Kind::kReceive) return {0, bytes};
    if (c.kind == Collective::Kind::kSend) return {bytes, 0};
    return bytes_of(c, rank);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Buffer memory_[2];
};

TEST_F(NcclOnGpu, CollectivesOfTwoRanks) {
  run_on_threads(2, [](Communicator& host) {
    Passage passage(host.rank());
    const auto transport = nccl_transport({.variables = [](const char* name) { return std::getenv(name); },
                                           .use_device = [&] { passage.device().make_current(); },
                                           .deadline_s = 60});
    DeviceRanks ranks(host, *transport,
                      [&](DeviceCommunicator& devices, const Collective& c) { passage.perform(devices, c); });
    for (const std::vector<Case>& cases : {sum_cases(), move_cases()})
      for (const Case& one : cases) {
        if (one.name == "SendReceive") continue;  // a send alone waits for its receive
        one.body(ranks);
        if (::testing::Test::HasFailure()) ADD_FAILURE() << one.name << " on rank " << host.rank();
        host.barrier();
      }
  });
}

// One test a mesh, so that one that does not end is known by its name.
class NcclMesh : public NcclOnGpu, public ::testing::WithParamInterface<MeshCase> {};

TEST_P(NcclMesh, LossesOfOneRankAndRecorded) {
  EXPECT_GT(expect_losses_of_one_rank(GetParam(), on_gpu(MeshTransport::kNccl)).recordings, 0u);
}

TEST_P(NcclMesh, TheSameBitsTwiceAndNodeByNode) {
  MeshDevices devices = on_gpu(MeshTransport::kNccl);
  constexpr int64_t kUpdates = 20;
  const MeshOutcome once = run_mesh(GetParam(), DType::kF32, kUpdates, devices),
                    twice = run_mesh(GetParam(), DType::kF32, kUpdates, devices);
  devices.node_by_node = true;
  const MeshOutcome slow = run_mesh(GetParam(), DType::kF32, kUpdates, devices);
  ASSERT_FALSE(HasFailure());
  EXPECT_GT(once.recordings, 0u);
  EXPECT_EQ(slow.recordings, 0u);
  expect_same_values(once, twice, "twice");
  expect_same_values(once, slow, "node by node");
}

class NcclOnFourThreads : public NcclOnGpu, public ::testing::WithParamInterface<MeshCase> {};

TEST_P(NcclOnFourThreads, LossesOfOneRank) {
  expect_losses_of_one_rank(GetParam(), on_gpu(MeshTransport::kNccl));
}

std::string mesh_name(const ::testing::TestParamInfo<MeshCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Gpu, NcclMesh, ::testing::ValuesIn(device_meshes(2)), mesh_name);
INSTANTIATE_TEST_SUITE_P(Gpu, NcclOnFourThreads, ::testing::ValuesIn(device_meshes(4)), mesh_name);

}  // namespace
}  // namespace vitrail
