// Runs ranks as threads of this process, each with its device and cores; the first error ends all.
#include "train/world.h"

#include <mutex>
#include <thread>

#include "base/cores.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "runtime/slow_device.h"
#include "train/device_transport.h"

namespace vitrail {

namespace {

// The first error of a run; what other ranks throw because of it is not kept.
class FirstError {
 public:
  void keep(int rank, int world) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    try {
      throw;
    } catch (Error& error) {
      if (world > 1) error.at("rank " + std::to_string(rank));
      error_ = std::current_exception();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

struct Failure {
  std::string text;
  int code = 1;
  bool by_others = false;  // an exchange with other ranks failed
};

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), exit_code(error.kind()), error.kind() == ErrorKind::kComm};
  } catch (const std::bad_alloc&) {
    return {"out of memory", exit_code(ErrorKind::kMemory)};
  } catch (const std::exception& error) {
    return {error.what()};
  } catch (...) {
    return {"an unknown error"};
  }
}

// While it lives, the watch of the job can make a rank's exchanges fail.
class Attached {
 public:
  Attached(liveness::Heartbeat* heartbeat, Communicator* world) : heartbeat_(heartbeat), world_(world) {
    if (heartbeat_) heartbeat_->attach(world_);
  }
  ~Attached() {
    if (heartbeat_) heartbeat_->detach(world_);
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  liveness::Heartbeat* heartbeat_;
  Communicator* world_;
};

// The cores that a rank's threads are bound to; none: they are not bound. All ranks must call it.
std::vector<int> own_cores(MeshCommunicators& ranks, const DeviceInfo& device, bool bind) {
  if (!bind || ranks.mesh().world() == 1) return {};
  std::vector<RankSeat> seats;
  for (const std::string& text : from_all(ranks.world(), seat_here(ranks.mesh(), device).text()))
    seats.push_back(RankSeat::from(text));
  share_cores(seats);
  const std::vector<int>& cores = seats[static_cast<size_t>(ranks.mesh().rank)].cores;
  return cores == allowed_cores() ? std::vector<int>() : cores;
}

// Opens the device of a rank of this process and runs `body` on it.
void run_on_device(LocalRanks& ranks, size_t local, MeshCommunicators& partners,
                   const std::function<void(RankContext&)>& body) {
  const int rank = partners.mesh().rank, size = partners.mesh().world();
  const DeviceInfo info = ranks.device(static_cast<int>(local));
  const BoundThread bound(own_cores(partners, info, ranks.mesh.bind));
  const char* const slow = ranks.variables ? ranks.variables(kSlowVariable) : nullptr;
  RankContext context(info, open_rank_device(info, rank, slow), ranks.seed);
  context.ranks = size > 1 ? &partners : nullptr;
  context.sharing = ranks.sharing;
  context.overlapping = ranks.overlapping;
  context.pulse = ranks.heartbeat ? &ranks.heartbeat->pulse(rank) : nullptr;
  const std::string note =
      size > 1 ? join_devices(context, partners, ranks.mesh.transport, ranks.variables) : "";
  if (rank == 0 && ranks.on_note && !note.empty()) ranks.on_note(note);
  body(context);
}

// Runs a rank of this process on this thread; every other rank hears of its failure.
void run_rank(LocalRanks& ranks, size_t local, FirstError& first,
              const std::function<void(RankContext&)>& body) {
  std::unique_ptr<Communicator>& world = ranks.worlds[local];
  const int rank = world->rank(), size = world->size();
  // Communicators are kept until the rank's memory is freed, and its failure reaches every other rank.
  std::unique_ptr<MeshCommunicators> partners;
  const Attached attached(ranks.heartbeat, world.get());
  try {
    partners = std::make_unique<MeshCommunicators>(std::move(world), mesh_of(ranks.mesh, rank));
    run_on_device(ranks, local, *partners, body);
  } catch (...) {
    const Failure failure = current_failure();
    first.keep(rank, size);
    if (ranks.heartbeat) ranks.heartbeat->failed(rank, failure.code, failure.by_others, failure.text);
    if (partners) partners->abort(failure.text);
  }
}

void join(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) thread.join();
}

// Ends the ranks that were started, because the next one could not be, and throws why.
[[noreturn]] void give_up(LocalRanks& ranks, std::vector<std::thread>& threads,
                          const std::exception& refused) {
  const auto* by_system = dynamic_cast<const std::system_error*>(&refused);
  const char* fewer = "fewer ranks (--ranks)";
  const Error error = by_system
                          ? thread_error(*by_system, threads.size() + 1, ranks.worlds.size(), "ranks", fewer)
                          : Error(ErrorKind::kMemory, "memory ran out while ranks were started", fewer);
  if (ranks.heartbeat)
    ranks.heartbeat->failed(ranks.worlds[0]->rank(), exit_code(error.kind()), false, error.what());
  ranks.worlds[0]->abort(error.what());
  join(threads);
  throw Error(error);
}

}  // namespace

void run_ranks(LocalRanks ranks, const std::function<void(RankContext&)>& body) {
  FirstError first;
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < ranks.worlds.size(); ++i)
      threads.emplace_back([&, i] { run_rank(ranks, i, first, body); });
  } catch (const std::exception& refused) {
    give_up(ranks, threads, refused);
  }
  run_rank(ranks, 0, first, body);
  join(threads);
  first.rethrow();
}

}  // namespace vitrail
