#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "launch/chosen_mpi.h"
#include "measure/system_report.h"

namespace vitrail::cli {

namespace {
void run_doctor(const Options& options, Console& console) {
  const SystemReport report(chosen_kernels(options), model_places(), choose_mpi().report,
                            environment_variable);
  console.print_json(to_json(report));
  console.print(strf("vitrail %s, %s build by %s\n", report.version.c_str(),
                     report.build_type.empty() ? "unoptimised" : report.build_type.c_str(),
                     report.compiler.c_str()));
  for (const auto& [title, text] : sections_of(report))
    console.print(strf("\n%s\n%s", console.bold(title).c_str(), text.c_str()));
}
}  // namespace

Command doctor_command() {
  return {{.name = "doctor",
           .summary = "what this machine and this build can do, and what is missing",
           .examples = {{"doctor", "processor, libraries, backends, bundled models, what to install"},
                        {"doctor --json", "the same for scripts"}},
           .options = {}},
          run_doctor};
}

}  // namespace vitrail::cli
