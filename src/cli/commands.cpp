#include "cli/commands.h"

namespace vitrail::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      predict_command(),    explain_command(),     train_command(),           launch_command(),
      eval_command(),       inspect_command(),     convert_command(),         verify_command(),
      plan_command(),       bench_infer_command(), bench_stream_command(),    bench_train_command(),
      bench_tune_command(), bench_dist_command(),  bench_calibrate_command(), profile_command(),
      data_check_command(), data_stats_command(),  data_show_command(),       data_pack_command(),
      scale_command(),      doctor_command(),
  };
  return all;
}

}  // namespace vitrail::cli
