// Judges the results of an op's run by what the roundings of the kernels that ran it allow, and keeps the
// largest share of that which any of them took.
#pragma once

#include "run_op.h"

namespace vitrail {

// The results `wanted` are the reference's in double.
Verdict judge_results(const OpCase& c, const RunSettings& settings, const std::vector<Values>& inputs,
                      const std::vector<Result>& found, const std::vector<Result>& wanted);

// What is wanted with the noise that kernels of such roundings may leave in results of these types.
std::vector<Known> with_noise(const OpCase& c, const RunSettings& settings, const Rounding& rounding,
                              const std::vector<Values>& inputs, const std::vector<Result>& wanted,
                              const std::vector<DType>& types);

// What is left between right results and the line: printed when the test program ends, for each backend and
// type the case that came nearest.
struct Margins {
  static void note(const RunSettings& settings, double share, const std::string& name);
};

}  // namespace vitrail
