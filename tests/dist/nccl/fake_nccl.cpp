// A library with NCCL's symbols for tests: its ranks are threads of one process, its devices' memory is the
// host's, and it fails or falls silent on cue. Streams are ignored: a collective is done when its call
// returns.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/transport.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION 23203
#endif

namespace {
using vitrail::DType;

enum Result { kSuccess = 0, kSystemError = 2, kInternalError = 3, kRemoteError = 6 };
enum class Kind { kAllReduce, kReduceScatter, kAllGather, kReduce, kBroadcast, kSend, kReceive };

struct Call {
  Kind kind;
  const char* in;
  char* out;
  size_t count;
  int type, peer;
};

// The ranks of one id, and where they meet.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, come = 0;
  int64_t round = 0;
  std::vector<std::vector<Call>> calls;  // by rank
};

struct Id {
  char bytes[128];
};

struct FakeComm {
  std::shared_ptr<Meeting> meeting;
  int rank = 0;
  std::atomic<bool> aborted{false}, used{false};
};

// Never destroyed: a thread that was left behind may still wait.
struct State {
  std::mutex mutex;
  std::string cue;
  int ids = 0;
  std::map<int, std::shared_ptr<Meeting>> meetings;
};
State& state() {
  static State& one = *new State;
  return one;
}

// A cue may end with " in detail": then the library says more about its error.
constexpr const char* kInDetail = " in detail";

bool cued(const std::string& what) {
  const std::lock_guard lock(state().mutex);
  return state().cue == what || state().cue == what + kInDetail;
}

// Waits for all ranks of a meeting; false when the communicator was aborted meanwhile.
bool meet(FakeComm& comm) {
  Meeting& meeting = *comm.meeting;
  std::unique_lock lock(meeting.mutex);
  const int64_t round = meeting.round;
  if (++meeting.come == meeting.size) {
    meeting.come = 0, ++meeting.round;
    meeting.changed.notify_all();
    return true;
  }
  while (meeting.round == round && !comm.aborted)
    meeting.changed.wait_for(lock, std::chrono::milliseconds(5));
  return !comm.aborted;
}

DType dtype_of(int type) {
  constexpr DType kTypes[] = {DType::kI8,  DType::kU8,  DType::kI32, DType::kI32, DType::kI64,
                              DType::kI64, DType::kF16, DType::kF32, DType::kF64, DType::kBF16};
  return kTypes[type];
}

// The call of another rank that belongs to this one: the same in order, or the send to a receive.
const Call& partner(const Meeting& meeting, int me, size_t index, int other) {
  const std::vector<Call>&mine = meeting.calls[static_cast<size_t>(me)],
        &theirs = meeting.calls[static_cast<size_t>(other)];
  if (mine[index].kind != Kind::kReceive) return theirs.at(index);
  int skip = 0;
  for (size_t i = 0; i < index; ++i) skip += mine[i].kind == Kind::kReceive && mine[i].peer == other;
  for (const Call& call : theirs)
    if (call.kind == Kind::kSend && call.peer == me && skip-- == 0) return call;
  return theirs.at(theirs.size());
}

// What a call brings to this rank; empty: nothing.
std::vector<char> result_of(const Meeting& meeting, int me, size_t index) {
  const Call& call = meeting.calls[static_cast<size_t>(me)][index];
  const DType dtype = dtype_of(call.type);
  const size_t bytes = call.count * vitrail::size_of(dtype);
  if (call.kind == Kind::kSend || (call.kind == Kind::kReduce && call.peer != me)) return {};
  if (call.kind == Kind::kBroadcast || call.kind == Kind::kReceive) {
    const Call& from = partner(meeting, me, index, call.peer);
    return {from.in, from.in + bytes};
  }
  std::vector<char> result;
  std::vector<const void*> ins;
  for (int r = 0; r < meeting.size; ++r) {
    const Call& other = partner(meeting, me, index, r);
    if (call.kind == Kind::kAllGather) result.insert(result.end(), other.in, other.in + bytes);
    ins.push_back(other.in + (call.kind == Kind::kReduceScatter ? static_cast<size_t>(me) * bytes : 0));
  }
  if (call.kind == Kind::kAllGather) return result;
  result.resize(bytes);
  void* const out = result.data();
  vitrail::sum_ranges(dtype, ins, {&out, 1}, call.count);
  return result;
}

int run_calls(FakeComm& comm, std::vector<Call> calls) {
  comm.used = true;
  if (cued("call_error")) return kInternalError;
  while ((cued("silence") || cued("late_error")) && !comm.aborted)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (comm.aborted) return kInternalError;
  Meeting& meeting = *comm.meeting;
  {
    const std::lock_guard lock(meeting.mutex);
    meeting.calls[static_cast<size_t>(comm.rank)] = std::move(calls);
  }
  if (!meet(comm)) return kInternalError;
  std::vector<std::vector<char>> results;
  const std::vector<Call>& own = meeting.calls[static_cast<size_t>(comm.rank)];
  for (size_t i = 0; i < own.size(); ++i) results.push_back(result_of(meeting, comm.rank, i));
  if (!meet(comm)) return kInternalError;  // all have read
  for (size_t i = 0; i < own.size(); ++i)
    if (!results[i].empty()) std::memcpy(own[i].out, results[i].data(), results[i].size());
  return meet(comm) ? kSuccess : kInternalError;
}

thread_local int depth = 0;
thread_local std::map<FakeComm*, std::vector<Call>> pending;

int add(void* comm, const Call& call) {
  auto& one = *static_cast<FakeComm*>(comm);
  if (depth == 0) return run_calls(one, {call});
  pending[&one].push_back(call);
  return kSuccess;
}

const char* chars(const void* p) {
  return static_cast<const char*>(p);
}
char* chars(void* p) {
  return static_cast<char*>(p);
}
}  // namespace

// NCCL chose the names.
// NOLINTBEGIN(readability-identifier-naming)
#define FAKE extern "C" [[gnu::visibility("default")]]

FAKE void fake_nccl_cue(const char* what) {
  const std::lock_guard lock(state().mutex);
  state().cue = what;
}
FAKE int ncclGetVersion(int* version) {
  *version = FAKE_VERSION;
  return kSuccess;
}
FAKE const char* ncclGetErrorString(int) {
  return "a fake error";
}
FAKE const char* ncclGetLastError(void*) {
  const std::lock_guard lock(state().mutex);
  return state().cue.ends_with(kInDetail) ? "a cable is loose" : "";
}
FAKE int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(state().mutex);
  const int number = ++state().ids;
  std::memcpy(id->bytes, &number, sizeof number);
  return kSuccess;
}
FAKE int ncclCommInitRank(void** comm, int size, Id id, int rank) {
  if (cued("init_error")) return kSystemError;
  while (cued("init_silence")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  // Each is kept for ever, where a leak checker finds it: whoever is inside may look at it after an abort.
  static auto& all = *new std::vector<FakeComm*>;
  auto* made = new FakeComm;
  {
    const std::lock_guard lock(state().mutex);
    all.push_back(made);
    std::shared_ptr<Meeting>& meeting = state().meetings[number];
    if (!meeting) {
      meeting = std::make_shared<Meeting>();
      meeting->size = size;
      meeting->calls.resize(static_cast<size_t>(size));
    }
    made->meeting = meeting;
  }
  made->rank = rank;
  *comm = made;
  return meet(*made) ? kSuccess : kInternalError;
}
FAKE int ncclCommDestroy(void*) {
  return kSuccess;
}
FAKE int ncclCommAbort(void* comm) {
  auto& one = *static_cast<FakeComm*>(comm);
  one.aborted = true;
  one.meeting->changed.notify_all();
  return kSuccess;
}
FAKE int ncclCommGetAsyncError(void* comm, int* status) {
  *status = cued("late_error") && static_cast<FakeComm*>(comm)->used ? kRemoteError : kSuccess;
  return kSuccess;
}
FAKE int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
FAKE int ncclGroupEnd() {
  if (--depth > 0) return kSuccess;
  int first = kSuccess;
  for (auto& [comm, calls] : std::exchange(pending, {}))
    if (const int status = run_calls(*comm, std::move(calls)); first == kSuccess) first = status;
  return first;
}
FAKE int ncclAllReduce(const void* in, void* out, size_t count, int type, int, void* comm, void*) {
  return add(comm, {Kind::kAllReduce, chars(in), chars(out), count, type, 0});
}
FAKE int ncclReduceScatter(const void* in, void* out, size_t count, int type, int, void* comm, void*) {
  return add(comm, {Kind::kReduceScatter, chars(in), chars(out), count, type, 0});
}
FAKE int ncclAllGather(const void* in, void* out, size_t count, int type, void* comm, void*) {
  return add(comm, {Kind::kAllGather, chars(in), chars(out), count, type, 0});
}
FAKE int ncclReduce(const void* in, void* out, size_t count, int type, int, int root, void* comm, void*) {
  return add(comm, {Kind::kReduce, chars(in), chars(out), count, type, root});
}
FAKE int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, void* comm, void*) {
  return add(comm, {Kind::kBroadcast, chars(in), chars(out), count, type, root});
}
FAKE int ncclSend(const void* in, size_t count, int type, int peer, void* comm, void*) {
  return add(comm, {Kind::kSend, chars(in), nullptr, count, type, peer});
}
FAKE int ncclRecv(void* out, size_t count, int type, int peer, void* comm, void*) {
  return add(comm, {Kind::kReceive, nullptr, chars(out), count, type, peer});
}
// NOLINTEND(readability-identifier-naming)
