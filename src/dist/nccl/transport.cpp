// NCCL as a transport between devices: it is loaded at run time, and ranks meet within a time limit.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "dist/nccl/communicator.h"
#include "dist/nccl_world.h"

namespace vitrail {

namespace nccl {
namespace {

std::string value_of(const Variables& variables, const char* name) {
  const char* text = variables ? variables(name) : nullptr;
  return text ? text : "";
}

// The first rank's key to the group, or why it has none.
struct SharedId {
  UniqueId id;
  Status status;
};

// One rank's call of ncclCommInitRank, on a thread that can be left behind: a call that waits for a rank
// which never comes cannot be ended safely, and the process is about to end.
struct Rendezvous {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  Status status = Status::kSuccess;
  Comm comm = nullptr;
};

std::shared_ptr<Rendezvous> rendezvous(const Library& library, std::function<void()> use_device, UniqueId id,
                                       int size, int rank) {
  auto shared = std::make_shared<Rendezvous>();
  std::thread([shared, &library, use = std::move(use_device), id, size, rank] {
    Comm comm = nullptr;
    Status status = Status::kSuccess;
    try {
      use();
      status = library.init_rank(&comm, size, id, rank);
      while (status == Status::kSuccess || status == Status::kInProgress) {
        Status now = Status::kSuccess;
        if (status == Status::kInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const Status asked = library.async_error(comm, &now);
        status = asked == Status::kSuccess ? now : asked;
        if (status != Status::kInProgress) break;
      }
    } catch (const Error&) {
      status = static_cast<Status>(1);
    }
    const std::lock_guard lock(shared->mutex);
    shared->over = true;
    shared->status = status;
    shared->comm = comm;
    shared->changed.notify_all();
  }).detach();
  return shared;
}

class NcclTransport : public DeviceTransport {
 public:
  NcclTransport(const Library& library, NcclSettings settings)
      : library_(library), settings_(std::move(settings)), guard_(std::make_shared<Guard>()) {}

  const char* name() const override { return "nccl"; }

  std::unique_ptr<DeviceCommunicator> join(Communicator& group) override {
    SharedId shared{};
    if (group.rank() == 0) shared.status = library_.unique_id(&shared.id);
    group.run({.kind = Collective::Kind::kBroadcast,
               .dtype = DType::kU8,
               .out = &shared,
               .counts = {sizeof shared}});
    require(shared.status, "inviting the ranks");
    const auto own = rendezvous(library_, settings_.use_device, shared.id, group.size(), group.rank());
    const Comm comm = joined(*own, group);
    return std::make_unique<NcclCommunicator>(guard_, library_, group, comm, settings_.deadline_s);
  }

 private:
  void require(Status status, const char* doing) const {
    if (status == Status::kSuccess) return;
    const char* detail = library_.last_error(nullptr);
    throw Error(ErrorKind::kComm,
                strf("%s: NCCL says '%s'%s%s", doing, library_.error_text(status),
                     detail && *detail ? ": " : "", detail ? detail : ""),
                "NCCL_DEBUG=WARN shows more; --set mesh.transport=staged goes without NCCL");
  }

  // Waits until all ranks of the group have come.
  Comm joined(Rendezvous& own, Communicator& group) const {
    const auto start = Clock::now();
    std::unique_lock lock(own.mutex);
    while (!own.changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return own.over; })) {
      if (const std::string why = group.failure(); !why.empty()) throw Error(ErrorKind::kComm, why);
      if (seconds_since(start) > settings_.deadline_s)
        throw Error(ErrorKind::kDeadline,
                    strf("the %d ranks of a group did not meet over NCCL within %g s", group.size(),
                         settings_.deadline_s),
                    "NCCL_DEBUG=INFO shows where it waits; --set mesh.transport=staged goes without NCCL");
    }
    require(own.status, "meeting the other ranks");
    return own.comm;
  }

  const Library& library_;
  NcclSettings settings_;
  std::shared_ptr<Guard> guard_;
};

}  // namespace
}  // namespace nccl

NcclReport nccl_report(const Variables& variables) {
  const nccl::Library& library = nccl::open_library(nccl::value_of(variables, kNcclVariable));
  return {library.problem, library.version > 0 ? nccl::version_text(library.version) : "", library.path,
          library.version >= nccl::kSharesGpus && nccl::value_of(variables, kSharedGpuVariable) == "1"};
}

std::unique_ptr<DeviceTransport> nccl_transport(NcclSettings settings) {
  const nccl::Library& library = nccl::open_library(nccl::value_of(settings.variables, kNcclVariable));
  if (!library.problem.empty())
    throw Error(ErrorKind::kDevice, "NCCL cannot be used: " + library.problem, nccl::kInstall);
  return std::make_unique<nccl::NcclTransport>(library, std::move(settings));
}

}  // namespace vitrail
