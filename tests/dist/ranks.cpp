#include "ranks.h"

#include <thread>

namespace vitrail {

void run_on_threads(int size, const RankBody& body) {
  const auto ranks = thread_communicators(size);
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (const auto& rank : ranks)
    threads.emplace_back([&] {
      try {
        body(*rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank->rank() << ": " << error.what();
        rank->abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace vitrail
