// Whether a checkpoint was made by the run that would go on from it: by comparing the facts of both. Knows
// neither where facts come from nor where checkpoints lie.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace vitrail {

// Compares facts by their dotted keys: config., data., val., card., teacher., machine. Throws Error(kConfig)
// where they are of another run; differences that change no weights are reported. What earlier versions did
// not keep is no difference. Returns whether results on the validation data can be compared, too.
bool require_same_run(const Json& saved, const Json& now,
                      const std::function<void(const std::string&)>& report);

}  // namespace vitrail
