// Ranks that live in one process, each a thread with a device of its own: a node of one may wait for a node
// of the other, as collectives do, in every kind of run; and what one does while another records costs that
// one a recording at most, never a result.
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "backend/cpu/kernels.h"
#include "backend/wrapped_device.h"
#include "cuda_test.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "runtime/executor.h"
#include "runtime/transfer.h"

namespace vitrail {
namespace {

constexpr int64_t kElems = 1000;

// Where two ranks wait for each other, round by round.
class Meeting {
 public:
  void start(size_t rank, int round) { rounds_[rank] = round; }
  // Error when the other has not come in time.
  void meet(size_t rank) {
    std::unique_lock lock(mutex_);
    const int round = rounds_[rank];
    reached_[rank] = round;
    both_.notify_all();
    const bool met =
        both_.wait_for(lock, std::chrono::seconds(20), [&] { return reached_[1 - rank] >= round; });
    VT_REQUIRE(met, ErrorKind::kInternal, "rank %zu waited for the other in vain in round %d", rank, round);
  }

 private:
  std::mutex mutex_;
  std::condition_variable both_;
  int rounds_[2] = {};  // each its own thread's
  int reached_[2] = {};
};

// Hands its input on once the other rank is there too.
class MeetOp : public Op {
 public:
  MeetOp(Meeting& meeting, size_t rank, Device& device) : meeting_(meeting), rank_(rank), device_(device) {}
  std::string_view kind() const override { return "meet"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override { return {ins[0]}; }
  DimsRule dims() const override { return {}; }
  void run(const KernelArgs& args) const {
    meeting_.meet(rank_);
    device_.copy(args.outs[0].data(), args.ins[0].data(), args.ins[0].desc().bytes());
  }

 private:
  Meeting& meeting_;
  size_t rank_;
  Device& device_;
};

// A backend's kernels and that of MeetOp.
class MeetingBackend : public Backend {
 public:
  explicit MeetingBackend(const Backend& base) : list_(base.kernels()) {
    const auto accepts = [](const NodeView&, const DeviceInfo&) { return std::string(); };
    const auto run = [](const KernelArgs& args) { dynamic_cast<const MeetOp&>(args.op).run(args); };
    list_.push_back({"meet", {{"meet", accepts, unprepared(run)}}});
  }
  const char* name() const override { return "meeting"; }
  const std::vector<OpKernels>& kernels() const override { return list_; }

 private:
  std::vector<OpKernels> list_;
};

Program tanh_meet_tanh(Meeting& meeting, size_t rank, Device& device) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', kElems}}});
  const ValueId met = b.add<MeetOp>({b.add<TanhOp>({x}, "first")}, "meet", meeting, rank, device);
  b.output("y", b.add<TanhOp>({met}, "last"));
  return b.finish();
}

// A first run, some that a device may record and repeat, some that time every node.
std::vector<float> run_rank(Meeting& meeting, size_t number, const Backend& backend, const DeviceInfo& info) {
  RankContext rank(info);
  const ExecutionPlan plan = plan_execution(tanh_meet_tanh(meeting, number, *rank.hardware), backend, info);
  const PersistentStore nothing(plan, rank);
  Executor executor(plan, nothing, rank);
  const std::vector<float> x(kElems, number == 0 ? 0.5f : -0.25f);
  for (int round = 1; round <= 6; ++round) {
    if (round == 5) executor.time_nodes(true);
    meeting.start(number, round);
    write_floats(rank, executor.input("x"), x);
    executor.run();
  }
  std::vector<float> y(kElems);
  read_floats(rank, executor.output("y"), y);
  return y;
}

void expect_ranks_meet(const Backend& base, const DeviceInfo& info) {
  const MeetingBackend backend(base);
  Meeting meeting;
  std::string failures[2];
  std::vector<float> results[2];
  std::vector<std::thread> threads;
  for (size_t rank : {0, 1})
    threads.emplace_back([&, rank] {
      try {
        results[rank] = run_rank(meeting, rank, backend, info);
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t rank : {0, 1}) {
    EXPECT_EQ(failures[rank], "");
    ASSERT_EQ(results[rank].size(), static_cast<size_t>(kElems));
    const float x = rank == 0 ? 0.5f : -0.25f;
    for (float y : results[rank]) EXPECT_NEAR(y, std::tanh(std::tanh(x)), 1e-6);
  }
}

TEST(Ranks, WaitForEachOtherInsideAProgram) {
  for (const char* backend : {"cpu", "ref"}) expect_ranks_meet(find_backend(backend), cpu_device(1));
}

class CudaRanks : public CudaTest {};

TEST_F(CudaRanks, WaitForEachOtherInsideAProgram) {
  expect_ranks_meet(cuda_backend(), cuda_device());
}

// This machine as a device that records; what others do spoils its first recordings. Work between start and
// end is done all the same, which is what a first replay would do.
class SpoiltDevice : public WrappedDevice {
 public:
  bool records() const override { return true; }
  void start_recording() override { ++started; }
  std::unique_ptr<Recording> end_recording() override {
    if (started <= spoilt) return nullptr;
    return std::make_unique<Counting>(replays);
  }
  int spoilt = 0, started = 0, replays = 0;

 private:
  class Counting : public Recording {
   public:
    explicit Counting(int& count) : count_(count) {}
    void replay() override { ++count_; }

   private:
    int& count_;
  };
};

Program one_tanh() {
  Builder b;
  b.output("y", b.add<TanhOp>({b.input("x", {DType::kF32, {{'B', kElems}}})}, "tanh"));
  return b.finish();
}

TEST(Ranks, ASpoiltRecordingIsTriedAgainByTheNextRun) {
  const ExecutionPlan plan = plan_execution(one_tanh(), find_backend("cpu"), cpu_device(1));
  auto opened = std::make_unique<SpoiltDevice>();
  SpoiltDevice& device = *opened;
  device.spoilt = 2;
  RankContext rank(plan.device, std::move(opened));
  const PersistentStore nothing(plan, rank);
  Executor executor(plan, nothing, rank);
  for (int run = 1; run <= 5; ++run) {
    const auto x = 0.1f * static_cast<float>(run);
    write_floats(rank, executor.input("x"), std::vector<float>(kElems, x));
    executor.run();
    EXPECT_EQ(device.started, std::min(run - 1, 3)) << "run " << run;
    EXPECT_EQ(device.replays, std::max(run - 3, 0)) << "run " << run;
    if (run > 4) continue;  // this device repeats nothing
    std::vector<float> y(kElems);
    read_floats(rank, executor.output("y"), y);
    for (float value : y) EXPECT_NEAR(value, std::tanh(x), 1e-6) << "run " << run;
  }
}

TEST(Ranks, RecordingsThatNeverSucceedEndInAnError) {
  const ExecutionPlan plan = plan_execution(one_tanh(), find_backend("cpu"), cpu_device(1));
  auto opened = std::make_unique<SpoiltDevice>();
  opened->spoilt = 1 << 20;
  RankContext rank(plan.device, std::move(opened));
  const PersistentStore nothing(plan, rank);
  Executor executor(plan, nothing, rank);
  const auto run_often = [&] {
    for (int run = 0; run < 1000; ++run) executor.run();
  };
  EXPECT_THROW(run_often(), Error);
}

TEST(Ranks, ALaunchThatFailsSaysWhyItself) {
  SpoiltDevice device;
  const auto fail = [] { throw Error(ErrorKind::kData, "the launch's own reason"); };
  EXPECT_THROW(record(device, fail), Error);
  device.spoilt = 1 << 20;
  EXPECT_EQ(record(device, fail), nullptr) << "launches fail because the recording is spoilt";
}

// What a rank holds is its own, whatever others of the process hold.
TEST(Ranks, CountTheirOwnMemory) {
  RankContext first(cpu_device(1)), second(cpu_device(1));
  const Buffer elsewhere(500, Category::kTransient);
  const Buffer of_first(1000, Category::kTransient, first.memory());
  {
    const Buffer of_second(3000, Category::kTransient, second.memory());
    EXPECT_EQ(first.allocated(Category::kTransient), 1000u);
    EXPECT_EQ(second.allocated(Category::kTransient), 3000u);
    EXPECT_EQ(second.allocated(Category::kParameters), 0u);
  }
  EXPECT_EQ(second.allocated(Category::kTransient), 0u);
}

class CudaRankMemory : public CudaTest {};

TEST_F(CudaRankMemory, CountsTheDevicesAndTheHostsForIt) {
  RankContext rank(cuda_device());
  const Buffer on_device(1000, Category::kStaging, rank.memory());
  const Buffer for_uploads(3000, Category::kStaging, rank.hardware->host_memory());
  EXPECT_EQ(rank.allocated(Category::kStaging), 4000u);
}

}  // namespace
}  // namespace vitrail
