// The samples of a run that could not be read, by whichever rank: each is told once, and their number over
// all ranks is held against loader.max_bad_fraction. On one rank the loader itself holds the limit.
#pragma once

#include <array>
#include <set>
#include <vector>

#include "train/run_journal.h"
#include "train/run_setup.h"
#include "train/team.h"

namespace vitrail {

class BadSamples {
 public:
  // All arguments must outlive the object.
  BadSamples(const RunSetup& setup, const Team& team, RunJournal& journal)
      : setup_(setup), team_(team), journal_(journal) {}

  // This rank has skipped a sample.
  void found(Purpose purpose, const BadSample& bad);
  // Returns how many of them the others do not know yet.
  size_t unreported() const { return mine_.size(); }
  // Every rank calls it when any has something to tell. Throws Error(kData) on all of them when there are too
  // many.
  void exchange();
  // The same with the question whether there is anything.
  void share();
  // Returns whether exchange() has thrown: then every rank stands at the same step.
  bool too_many() const { return too_many_; }

 private:
  struct Skipped {
    Purpose purpose;
    int64_t sample;
    std::string name, reason;
  };
  void report(const Skipped& bad, int rank);

  const RunSetup& setup_;
  const Team& team_;
  RunJournal& journal_;
  std::vector<Skipped> mine_;
  std::array<std::set<int64_t>, 2> known_;  // by Purpose
  bool too_many_ = false;
};

}  // namespace vitrail
