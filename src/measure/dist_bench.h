// All-reduce of some megabytes over each transport at hand, against a plain copy of the same bytes, measured
// in alternation, so that a disturbance of the machine affects all. Prints nothing and knows no options.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/timing.h"
#include "dist/communicator.h"

namespace vitrail {

// One group of ranks that sum a buffer each time rank 0 says so.
class SummingRanks {
 public:
  // Makes `ranks` threads, the calling one being rank 0.
  SummingRanks(int ranks, DType dtype, size_t count);
  // Rank 0 of a group whose others call follow().
  SummingRanks(std::unique_ptr<Communicator> lead, DType dtype, size_t count);
  ~SummingRanks();  // lets the others go
  SummingRanks(const SummingRanks&) = delete;
  SummingRanks& operator=(const SummingRanks&) = delete;

  const Communicator& group() const { return *lead_; }
  // Returns the seconds of one all-reduce, from when all are ready until it is complete.
  double once();

 private:
  std::vector<std::unique_ptr<Communicator>> others_;
  std::vector<std::jthread> threads_;
  std::unique_ptr<Communicator> lead_;
  DType dtype_;
  std::vector<char> buffer_;
};

// Returns on every rank what rank 0 says: whether another round follows. Nobody spins meanwhile, whatever the
// transport does.
bool goes_on(Communicator& comm, bool go);

// Takes part in what rank 0 measures until it has finished; sleeps meanwhile, and calls `summed` after each
// sum.
void follow(Communicator& comm, DType dtype, size_t count, const std::function<void()>& summed = {});

class DistBench {
 public:
  DistBench(DType dtype, size_t count);

  void add(std::unique_ptr<SummingRanks> ranks);
  // Measures the copy and every transport once more.
  void round();
  void forget();  // what was measured to warm up

  nlohmann::ordered_json to_json() const;
  std::string to_text() const;

 private:
  struct Row {
    std::unique_ptr<SummingRanks> ranks;  // none for the copy
    std::vector<double> seconds = {};
  };
  double copy_once();

  DType dtype_;
  std::vector<char> from_, to_;
  std::vector<Row> rows_;
};

}  // namespace vitrail
