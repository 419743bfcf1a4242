#include "cli/commands.h"

namespace vitrail::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      predict_command(), explain_command(),     inspect_command(), convert_command(), verify_command(),
      plan_command(),    bench_infer_command(), profile_command(), doctor_command(),
  };
  return all;
}

}  // namespace vitrail::cli
