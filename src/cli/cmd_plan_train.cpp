#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cmd_plan.h"
#include "cli/device_choice.h"
#include "cli/train_plan.h"
#include "measure/run_estimate.h"
#include "telemetry/format.h"

namespace vitrail::cli {

void run_train_plan(const Options& options, Console& console) {
  const PlanTarget target = read_plan_target(options);
  DeviceInfo device = target.device;
  if (!target.file) device.kernels = chosen_kernels(options).table;
  const RunPlan plan = planned_run(options, device);
  for (const std::string& note : plan.notes()) console.say(note);
  if (options.given("dump-after")) {
    const std::string& pass = options.text("dump-after");
    const std::string text = dump_program(plan, pass);
    console.print_json({{"after", pass}, {"program", text}});
    return console.print(text);
  }
  const RunEstimate e = estimate_run(plan, target);
  console.print_json(to_json(plan, e));
  console.print(to_text(plan, e));
  if (plan.peak_bytes() > e.available)
    console.say(strf("warning: this does not fit %s%s; the largest micro-batch that does is %s",
                     e.calibrated ? "on " : "", e.where.c_str(), format_integer(e.largest).c_str()));
}

}  // namespace vitrail::cli
