// Device collectives over a library with NCCL's symbols: the suite, and what is said when the library fails,
// falls silent, is too old or is not there.
#include <dlfcn.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "dist/nccl/library.h"
#include "dist/nccl_world.h"
#include "nccl/device_ranks.h"
#include "ranks.h"
#include "thrown.h"

namespace vitrail {

namespace {

Variables with_library(const std::string& path) {
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the analyzer does not follow std::function.
  return [path](const char* name) { return std::string(name) == kNcclVariable ? path.c_str() : nullptr; };
}

// The analyzer does not see what std::function's destructor does.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)
std::unique_ptr<DeviceTransport> fake(double deadline_s = 60) {
  return nccl_transport({.variables = with_library(VT_FAKE_NCCL), .deadline_s = deadline_s});
}
// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

// A send that is enqueued alone waits for its receive; the suite starts both and waits later.
std::vector<Case> device_cases() {
  std::vector<Case> cases;
  for (Case& one : all_cases())
    if (one.name != "SendReceive") cases.push_back(std::move(one));
  return cases;
}

class NcclCollectives : public testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(NcclCollectives, Run) {
  const auto& [one, size] = GetParam();
  run_on_threads(size, [&, body = one.body](Communicator& host) {
    const auto transport = fake();
    DeviceRanks ranks(host, *transport,
                      [](DeviceCommunicator& devices, const Collective& c) { devices.enqueue(c, nullptr); });
    body(ranks);
  });
}

INSTANTIATE_TEST_SUITE_P(Fake, NcclCollectives,
                         testing::Combine(testing::ValuesIn(device_cases()), testing::Values(1, 2, 3, 4)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

// What a rank ended by, and after how long.
struct End {
  ErrorKind kind = ErrorKind::kInternal;
  std::string text;
  double seconds = 0;
  bool told = false;  // the group knew of it before the rank itself said so
};

// While it lives, the library does something else than it should.
class Cue {
 public:
  explicit Cue(const char* what) { give(what); }
  Cue(const Cue&) = delete;
  Cue& operator=(const Cue&) = delete;
  ~Cue() { give(""); }

 private:
  static void give(const char* what) {
    nccl_report(with_library(VT_FAKE_NCCL));
    void* library = dlopen(VT_FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    reinterpret_cast<void (*)(const char*)>(dlsym(library, "fake_nccl_cue"))(what);
  }
};

// Two ranks sum a number; returns how each ended.
std::vector<End> ends_of(const char* cue, double deadline_s,
                         const std::function<void(Communicator&)>& meanwhile = {}) {
  std::vector<End> ends(2);
  const auto hosts = thread_communicators(2);
  std::vector<std::thread> threads;
  threads.reserve(hosts.size());
  std::optional<Cue> given;
  const bool in_init = std::string(cue).starts_with("init");
  if (in_init) given.emplace(cue);
  std::atomic<int> joined{0};
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      End& end = ends[static_cast<size_t>(r)];
      Communicator& host = *hosts[static_cast<size_t>(r)];
      const auto start = Clock::now();
      try {
        const auto transport = fake(deadline_s);
        const auto devices = transport->join(host);
        host.barrier();
        if (r == 0 && !in_init) given.emplace(cue);
        host.barrier();
        ++joined;
        float number = 1;
        const auto sum =
            Collective{.kind = Collective::Kind::kAllReduce, .in = &number, .out = &number, .counts = {1}};
        devices->enqueue(sum, nullptr);
        devices->check();
        ADD_FAILURE() << "nothing happened";
      } catch (const Error& error) {
        end = {error.kind(), error.what(), seconds_since(start), !host.failure().empty()};
        host.abort(error.what());
      }
    });
  if (meanwhile) {
    while (joined < 2) std::this_thread::yield();
    meanwhile(*hosts[0]);
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

TEST(Nccl, AnErrorOfAMeetingEndsAllRanks) {
  for (const auto& [cue, detail] :
       {std::pair{"init_error", ""}, {"init_error in detail", ": a cable is loose"}})
    for (const End& end : ends_of(cue, 60)) {
      EXPECT_EQ(end.kind, ErrorKind::kComm);
      EXPECT_EQ(end.text, strf("meeting the other ranks: NCCL says 'a fake error'%s\n  try: "
                               "NCCL_DEBUG=WARN shows more; --set mesh.transport=staged goes without NCCL",
                               detail));
      EXPECT_LT(end.seconds, 5);
    }
}

TEST(Nccl, ASilentMeetingEndsAtTheDeadline) {
  const std::vector<End> ends = ends_of("init_silence", 0.4);
  EXPECT_TRUE(ends[0].kind == ErrorKind::kDeadline || ends[1].kind == ErrorKind::kDeadline);
  for (const End& end : ends) {
    EXPECT_NE(end.text.find("did not meet over NCCL within 0.4 s"), std::string::npos) << end.text;
    EXPECT_LT(end.seconds, 5);
  }
}

TEST(Nccl, AnErrorOfACallIsTold) {
  for (const auto& [cue, detail] :
       {std::pair{"call_error", ""}, {"call_error in detail", ": a cable is loose"}})
    for (const End& end : ends_of(cue, 60)) {
      EXPECT_EQ(end.kind, ErrorKind::kComm);
      EXPECT_EQ(end.text, strf("all-reduce of f32 [1]: NCCL says 'a fake error'%s", detail));
    }
}

TEST(Nccl, DevicesHaveNoBarrier) {
  run_on_threads(1, [](Communicator& host) {
    const auto transport = fake();
    const auto devices = transport->join(host);
    const std::string said = thrown_by([&] { devices->enqueue(Collective{}, nullptr); });
    EXPECT_NE(said.find("does not hold: devices have no barrier"), std::string::npos) << said;
    float number = 3, out = 0;
    devices->enqueue({.kind = Collective::Kind::kAllReduce, .in = &number, .out = &out, .counts = {1}},
                     nullptr);
    EXPECT_EQ(out, 3) << "the next collective goes on";
  });
}

// The loader finds a library that is open already by its name alone, and knows the file.
TEST(Nccl, TheReportNamesTheFileThatWasFound) {
  EXPECT_EQ(nccl_report(with_library(VT_FAKE_NCCL)).path, VT_FAKE_NCCL);
  const std::string name = std::filesystem::path(VT_FAKE_NCCL).filename().string();
  const NcclReport found = nccl_report(with_library(name));
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.path, VT_FAKE_NCCL);
  EXPECT_EQ(nccl_report(with_library(VT_OLD_NCCL)).path, VT_OLD_NCCL);
  EXPECT_EQ(nccl_report(with_library("/nowhere/libnccl.so.2")).path, "");
}

TEST(Nccl, ALateErrorEndsWhatWaits) {
  for (const End& end : ends_of("late_error", 60)) {
    EXPECT_EQ(end.kind, ErrorKind::kComm);
    EXPECT_TRUE(end.told);
    EXPECT_NE(end.text.find("a fake error' about what it was doing"), std::string::npos) << end.text;
    EXPECT_LT(end.seconds, 5);
  }
}

TEST(Nccl, SilenceEndsAtTheDeadline) {
  const std::vector<End> ends = ends_of("silence", 0.4);
  EXPECT_TRUE(ends[0].kind == ErrorKind::kDeadline || ends[1].kind == ErrorKind::kDeadline);
  for (const End& end : ends)
    EXPECT_NE(end.text.find("all-reduce of f32 [1]: NCCL did not answer within 0.4 s"), std::string::npos)
        << end.text;
}

// As the watch of a job does it: on a thread of its own, by the group of all ranks.
TEST(Nccl, AnAbortOfTheRanksReachesTheirDevices) {
  const auto abort = [](Communicator& world) { world.abort("rank 7 was killed"); };
  for (const End& end : ends_of("silence", 60, abort)) {
    EXPECT_EQ(end.kind, ErrorKind::kComm);
    EXPECT_EQ(end.text, "rank 7 was killed");
    EXPECT_LT(end.seconds, 5);
  }
}

TEST(Nccl, AProblemNamesWhatBringsIt) {
  const auto problem = [](const char* path) { return nccl_report(with_library(path)).problem; };
  const std::string install = nccl::kInstall;
  EXPECT_TRUE(install.starts_with("pip install nvidia-nccl-cu13")) << install;
  EXPECT_EQ(nccl_report(with_library(VT_FAKE_NCCL)).problem, "");
  EXPECT_EQ(nccl_report(with_library(VT_FAKE_NCCL)).version, "2.32.3");
  EXPECT_EQ(problem(VT_OLD_NCCL), VT_OLD_NCCL " is NCCL 2.10.5; at least 2.18.0 is needed: " + install);
  EXPECT_EQ(problem("/nowhere/libnccl.so.2"), "/nowhere/libnccl.so.2 is not there; " + install);
  EXPECT_EQ(problem("libm.so.6"), "libm.so.6 has no ncclGetVersion: it is no NCCL; " + install);
  try {
    nccl_transport({.variables = with_library("/nowhere/libnccl.so.2")});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 69);
    EXPECT_NE(std::string(error.what()).find("pip install nvidia-nccl-cu13"), std::string::npos);
  }
}

TEST(Nccl, RanksShareAGpuOnlyWhereItIsAllowed) {
  const auto report = [](const char* allowed) {
    return nccl_report([allowed](const char* name) {
      return std::string(name) == kNcclVariable        ? VT_FAKE_NCCL
             : std::string(name) == kSharedGpuVariable ? allowed
                                                       : nullptr;
    });
  };
  EXPECT_FALSE(report(nullptr).shares_gpus);
  EXPECT_FALSE(report("0").shares_gpus);
  EXPECT_TRUE(report("1").shares_gpus);
}

}  // namespace

}  // namespace vitrail
