// How values travel between devices, on a machine without any: through page-locked memory, by a library with
// NCCL's symbols whose devices are the host; and which of them a run takes.
#include <atomic>
#include <mutex>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/wrapped_device.h"
#include "base/process_mark.h"
#include "device_meshes.h"
#include "dist/nccl_world.h"
#include "dist/ranks.h"
#include "thrown.h"
#include "train/device_transport.h"
#include "train/world.h"

namespace vitrail {
namespace {

// This machine's memory, called another's.
class ApartDevice : public WrappedDevice {
 public:
  bool shares_host_memory() const override { return false; }
  MemorySource* host_memory() override { return &process_memory(); }
};

// A device that records, and does the work all the same; its replays do nothing. So many of its first
// recordings are spoilt.
class RecordingDevice : public ApartDevice {
 public:
  explicit RecordingDevice(int spoilt) : spoilt_(spoilt) {}
  bool shares_host_memory() const override { return true; }
  MemorySource* host_memory() override { return this; }
  bool records() const override { return true; }
  std::unique_ptr<Recording> end_recording() override {
    if (spoilt_-- > 0) return nullptr;
    return std::make_unique<Nothing>();
  }

 private:
  class Nothing : public Recording {
    void replay() override {}
  };
  int spoilt_;
};

MeshDevices staged() {
  return {.backend = &cpu_backend(), .info = cpu_device(1), .open = [] {
            return std::make_unique<ApartDevice>();
          }};
}

MeshDevices by_fake_nccl(bool share_queues = false) {
  const Variables variables = [](const char* name) {
    return std::string(name) == kNcclVariable ? VT_FAKE_NCCL : nullptr;
  };
  return {.join = [=](RankContext& rank, MeshCommunicators& ranks) {
    rank.shares_queues = share_queues;
    ranks.use(nccl_transport({.variables = variables}));
  }};
}

class DeviceMeshes : public ::testing::TestWithParam<MeshCase> {};

TEST_P(DeviceMeshes, StagedLossesOfOneRank) {
  const MeshOutcome many = expect_losses_of_one_rank(GetParam(), staged());
  for (size_t r = 0; r < many.locked.size(); ++r) {
    EXPECT_GT(many.locked[r], 0u);
    EXPECT_EQ(many.locked[r], many.planned_locked[r]) << "rank " << r;
  }
}

TEST_P(DeviceMeshes, LossesOfOneRankByNcclsCalls) {
  expect_losses_of_one_rank(GetParam(), by_fake_nccl());
}

class DeviceRecording : public ::testing::TestWithParam<bool> {};

TEST_P(DeviceRecording, IsMadeAgainByAllWhereOneWasSpoilt) {
  std::atomic<int> opened{0};
  MeshDevices devices = by_fake_nccl(GetParam());
  devices.backend = &cpu_backend();
  devices.info = cpu_device(1);
  devices.open = [&] { return std::make_unique<RecordingDevice>(opened++ == 0 ? 3 : 0); };
  for (const MeshCase& c : device_meshes(2)) {
    // Recorded together with its collectives, or between them.
    const size_t recordings = run_mesh(c, DType::kF32, 3, devices).recordings;
    EXPECT_EQ(recordings > 1, GetParam()) << c.name;
    EXPECT_GT(recordings, 0u) << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, DeviceRecording, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Own"; });

// The choice of kernels needs no GPU.
TEST_P(DeviceMeshes, EveryNodeHasAKernelOnAGpu) {
  StepConfig config = usual_step(DType::kF32);
  if (GetParam().change) GetParam().change(config);
  train_parameters(config);
  const Mesh mesh{GetParam().mesh};
  for (int rank = 0; rank < mesh.world(); ++rank) {
    config.distribution.mesh = mesh.of_rank(rank);
    EXPECT_NO_THROW(plan_step(config, cuda_backend(), planned_cuda_device("H200", 90, 132)))
        << "rank " << rank;
  }
}

std::vector<MeshCase> meshes() {
  std::vector<MeshCase> all = device_meshes(2);
  for (MeshCase& c : device_meshes(4)) all.push_back(std::move(c));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Apart, DeviceMeshes, ::testing::ValuesIn(meshes()),
                         [](const auto& test) { return test.param.name; });

TEST(DeviceTransport, TakesNcclWhereEveryRankCan) {
  const DeviceSeat good{"vm 0000:18:00.0", "", "2.32.3", false},
      other{"vm 0000:19:00.0", "", "2.32.3", false};
  EXPECT_TRUE(decide_transport({good, other}, MeshTransport::kAuto).nccl);
  EXPECT_TRUE(decide_transport({good, other}, MeshTransport::kNccl).nccl);
  EXPECT_FALSE(decide_transport({good, other}, MeshTransport::kStaged).nccl);
  const DeviceSeat cpu;
  const TransportDecision on_cores = decide_transport({cpu, cpu}, MeshTransport::kAuto);
  EXPECT_FALSE(on_cores.nccl);
  EXPECT_EQ(on_cores.note, "");
}

TEST(DeviceTransport, OfARunOnCoresIsNotNccl) {
  MeshConfig mesh{.dp = 2};
  mesh.transport = MeshTransport::kNccl;
  int ran = 0;
  try {
    run_ranks({.worlds = thread_communicators(2), .mesh = mesh, .device = [](int) { return cpu_device(1); }},
              [&](RankContext&) { ++ran; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 69);
    EXPECT_NE(std::string(error.what()).find("mesh.transport is nccl"), std::string::npos) << error.what();
  }
  EXPECT_EQ(ran, 0);
}

// A GPU of that number, or the processor where there is none.
class SeatedDevice : public ApartDevice {
 public:
  explicit SeatedDevice(std::string number) : number_(std::move(number)) {}
  bool shares_host_memory() const override { return number_.empty(); }
  std::string identity() const override { return number_; }

 private:
  std::string number_;
};

// What ranks on these devices agree on: whether each shares its queues with another, and what is noted.
struct Joined {
  std::vector<bool> shares_queues;
  std::string note;
  bool by_nccl = false;
};

Joined joined(const std::vector<std::string>& numbers, const std::map<std::string, std::string>& set) {
  Joined all;
  std::mutex mutex;
  all.shares_queues.resize(numbers.size());
  const Variables variables = [&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
  const auto size = static_cast<int>(numbers.size());
  run_on_threads(size, [&](Communicator& host) {
    MeshCommunicators ranks(host.split(0, host.rank()), Mesh{{size, 1, 1, 1}, host.rank()});
    RankContext rank(cpu_device(1),
                     std::make_unique<SeatedDevice>(numbers[static_cast<size_t>(host.rank())]));
    const std::string note = join_devices(rank, ranks, MeshTransport::kAuto, variables);
    const bool by_nccl = thrown_by([&] { ranks.devices_over(Axis::kData); }) == "nothing";
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(all.note.empty() || all.note == note) << "all are told the same";
    all.note = note, all.by_nccl = by_nccl;
    all.shares_queues[static_cast<size_t>(host.rank())] = rank.shares_queues;
  });
  return all;
}

TEST(DeviceTransport, RanksOfAProcessOnOneGpuShareItsQueues) {
  const std::string host = ProcessMark::current().host,
                    staged = "values travel through the host (staged), not by NCCL: ";
  const std::map<std::string, std::string> plain = {{kNcclVariable, VT_FAKE_NCCL}},
                                           shared = {{kNcclVariable, VT_FAKE_NCCL},
                                                     {kSharedGpuVariable, "1"}},
                                           many = {{kNcclVariable, VT_FAKE_NCCL},
                                                   {kSharedGpuVariable, "1"},
                                                   {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}};
  const struct {
    std::vector<std::string> numbers;
    std::map<std::string, std::string> set;
    std::vector<bool> shares_queues;
    std::string note;
    bool by_nccl;
  } rows[] = {
      {{"gpu0", "gpu1"}, plain, {false, false}, "", true},
      {{"gpu0", "gpu0"},
       plain,
       {true, true},
       staged + "ranks 0 and 1 share the GPU " + host +
           " gpu0, which NCCL 2.32.3 takes part in only from 2.30 on and with NCCL_MULTI_RANK_GPU_ENABLE=1",
       false},
      {{"gpu1", "gpu0", "gpu0"},
       shared,
       {false, true, true},
       staged + "ranks 1 and 2 are threads of one process on the GPU " + host +
           " gpu0, which needs CUDA_DEVICE_MAX_CONNECTIONS=32",
       false},
      {{"gpu0", "gpu0"}, many, {true, true}, "", true},
      {{"gpu0", ""}, plain, {false, false}, staged + "rank 1 has no GPU", false},
      {{"", ""}, plain, {false, false}, "", false}};
  for (const auto& row : rows) {
    const Joined found = joined(row.numbers, row.set);
    EXPECT_EQ(found.shares_queues, row.shares_queues) << row.note;
    EXPECT_EQ(found.note, row.note);
    EXPECT_EQ(found.by_nccl, row.by_nccl) << row.note;
  }
}

TEST(DeviceTransport, GpusAreSharedWhereNcclIsToldSo) {
  const auto told = [](const char* value) {
    return ranks_share_gpus([value](const char* name) {
      return std::string_view(name) == "NCCL_MULTI_RANK_GPU_ENABLE" ? value : nullptr;
    });
  };
  EXPECT_TRUE(told("1"));
  for (const char* value : {"0", "", "11", "yes"}) EXPECT_FALSE(told(value)) << value;
  EXPECT_FALSE(told(nullptr));
  EXPECT_FALSE(ranks_share_gpus({}));
}

TEST(DeviceTransport, SaysWhyNcclIsNotTaken) {
  const DeviceSeat good{"vm 0000:18:00.0", "", "2.32.3", false},
      other{"vm 0000:19:00.0", "", "2.32.3", false};
  DeviceSeat lacks = other, old = other, cpu, sharing = good;
  lacks.problem = "libnccl.so.2 is not there; pip install nvidia-nccl-cu13";
  old.version = "2.28.9";
  sharing.shares_gpus = true, sharing.process = "vm-7-1", sharing.queues = 32;
  EXPECT_TRUE(decide_transport({sharing, sharing}, MeshTransport::kNccl).nccl);
  DeviceSeat few = sharing, elsewhere = sharing;
  few.queues = 31, elsewhere.process = "vm-8-1", elsewhere.queues = 8;
  EXPECT_TRUE(decide_transport({sharing, elsewhere}, MeshTransport::kNccl).nccl);
  const std::string of_one =
      " are threads of one process on the GPU vm 0000:18:00.0, which needs CUDA_DEVICE_MAX_CONNECTIONS=32";
  const struct {
    std::vector<DeviceSeat> seats;
    std::string why, remedy;
  } cases[] = {{{good, lacks},
                "rank 1: libnccl.so.2 is not there; pip install nvidia-nccl-cu13",
                "pip install nvidia-nccl-cu13, or the system's libnccl2"},
               {{good, old}, "rank 1 has NCCL 2.28.9, rank 0 has 2.32.3", "one version of it on every host"},
               {{good, cpu}, "rank 1 has no GPU", "--device cuda on every rank, or mesh.transport auto"},
               {{good, good},
                "ranks 0 and 1 share the GPU vm 0000:18:00.0, which NCCL 2.32.3 takes part in only from 2.30 "
                "on and with "
                "NCCL_MULTI_RANK_GPU_ENABLE=1",
                "one GPU a rank, or NCCL_MULTI_RANK_GPU_ENABLE=1"},
               {{other, sharing, few},
                "ranks 1 and 2" + of_one,
                "CUDA_DEVICE_MAX_CONNECTIONS=32, or a process for each rank (mpirun)"},
               {{few, few},
                "ranks 0 and 1" + of_one,
                "CUDA_DEVICE_MAX_CONNECTIONS=32, or a process for each rank (mpirun)"}};
  for (const auto& one : cases) {
    const TransportDecision chosen = decide_transport(one.seats, MeshTransport::kAuto);
    EXPECT_FALSE(chosen.nccl);
    EXPECT_EQ(chosen.note, "values travel through the host (staged), not by NCCL: " + one.why);
    EXPECT_EQ(thrown_by([&] { decide_transport(one.seats, MeshTransport::kNccl); }),
              "device: mesh.transport is nccl, which cannot be used: " + one.why + " | " + one.remedy);
  }
}

}  // namespace
}  // namespace vitrail
