#include "train/world.h"

#include <mutex>
#include <thread>

#include "base/error.h"

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

std::string text_of_current() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown error";
  }
}

}  // namespace

void run_ranks(LocalRanks ranks, const std::function<void(RankContext&)>& body) {
  FirstError first;
  const auto run_one = [&](size_t local) {
    std::unique_ptr<Communicator>& world = ranks.worlds[local];
    const int rank = world->rank(), size = world->size();
    // Communicators are kept until the rank's memory is freed, and its failure reaches every other rank.
    std::unique_ptr<MeshCommunicators> partners;
    try {
      partners = std::make_unique<MeshCommunicators>(std::move(world), mesh_of(ranks.mesh, rank));
      RankContext context(ranks.device(static_cast<int>(local)), ranks.seed);
      context.ranks = size > 1 ? partners.get() : nullptr;
      context.sharing = ranks.sharing;
      body(context);
    } catch (...) {
      first.keep(rank, size);
      if (partners) partners->abort(text_of_current());
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < ranks.worlds.size(); ++i) threads.emplace_back(run_one, i);
  run_one(0);
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace vitrail
