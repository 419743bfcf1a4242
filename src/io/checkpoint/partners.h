// The ranks that write or read a checkpoint together, as far as its store needs them: texts from all to all.
// What carries the texts is not known here.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace vitrail {

class Partners {
 public:
  virtual ~Partners() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The texts of all, by rank; every rank calls it.
  virtual std::vector<std::string> from_all(const std::string& mine) = 0;
  std::string from_first(const std::string& mine) { return from_all(rank() == 0 ? mine : std::string())[0]; }
};

// Calls `body` on every rank and returns what each of them gave. Where it throws on some, the error of the
// first of those is thrown on all, and `failed` is its rank: nobody is left waiting, and all go the same way.
// Errors of exchanges pass at once.
std::vector<std::string> agreed(Partners& partners, const std::function<std::string()>& body,
                                int* failed = nullptr);

}  // namespace vitrail
