// Judges the results of an op's run by the declared roundings of its kernels, and keeps the largest error as
// a share of the allowed one.
#pragma once

#include <map>
#include <utility>

#include "run_op.h"

namespace vitrail {

// Tokens of packed attention whose rows alone are judged; none: all.
using Tokens = std::vector<int64_t>;

// Judges a case's runs on the same inputs in the same types. The noise takes longer to compute than most
// runs, so it is kept for the next kernels that round alike.
class OpJudge {
 public:
  // The results `wanted` are the reference's in double.
  OpJudge(const OpCase& c, const std::vector<Values>& inputs, const std::vector<Result>& wanted,
          Tokens tokens = {})
      : case_(c), inputs_(inputs), wanted_(wanted), tokens_(std::move(tokens)) {}

  Verdict verdict(const RunSettings& settings, const std::vector<Result>& found);

 private:
  const std::vector<Known>& known(const RunSettings& settings, const std::vector<Result>& found);

  const OpCase& case_;
  const std::vector<Values>& inputs_;
  const std::vector<Result>& wanted_;
  const Tokens tokens_;
  std::map<std::pair<std::string, std::vector<DType>>, std::vector<Known>> known_;  // by roundings and types
};

// Returns the expected results with the noise that kernels of such roundings may leave in these types.
std::vector<Known> with_noise(const OpCase& c, const RunSettings& settings, const Rounding& rounding,
                              const std::vector<Values>& inputs, const std::vector<Result>& wanted,
                              const std::vector<DType>& types, const Tokens& tokens = {});
// Judges the rows of these tokens, those of queries, keys and values apart; all of a result where none are
// named.
Verdict judge_rows(const Known& wanted, std::span<const double> found, const Tokens& tokens);

// The share of what is allowed that a right kernel may take: half, and what rounding to the type adds to
// that.
constexpr double kAllowedShare = 0.505;

// The margin of right results: printed when the test program ends, for each backend and type the case with
// the least. Cases that are bounded otherwise than by roundings are a `kind` of their own.
struct Margins {
  static void note(const RunSettings& settings, double share, const std::string& name, const char* kind = "");
};

}  // namespace vitrail
