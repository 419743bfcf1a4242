#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/values.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "measure/system_report.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
std::string cache_text(const MachineInfo& machine) {
  std::string text;
  for (const CacheInfo& cache : machine.caches) {
    text += (text.empty() ? "" : ", ") + cache.name + " " + format_bytes(cache.bytes);
    if (cache.shared_by > 1) text += " (shared by " + std::to_string(cache.shared_by) + ")";
  }
  return text.empty() ? "unknown" : text;
}

std::string isa_text(const MachineInfo& machine) {
  const std::string without = join(machine.isa_missing, " ");
  return join(machine.isa, " ") + (without.empty() ? "" : "  (without " + without + ")");
}

// Returns "baseline, avx2 (used); not tuned: vitrail bench tune".
std::string kernels_text(const SystemReport& report) {
  return join(report.isa_levels, ", ") + " (used); " +
         (report.tuned.note.empty() ? "not tuned: vitrail bench tune" : report.tuned.note);
}

std::string machine_text(const SystemReport& report) {
  const MachineInfo& m = report.machine;
  return format_pairs({{"processor", m.processor},
                       {"instructions", isa_text(m)},
                       {"kernels", kernels_text(report)},
                       {"peak", strf("%s GFLOP/s in f32, measured with %s on %d threads",
                                     format_si(report.peak_gflops).c_str(), report.isa.c_str(), m.usable)},
                       {"cores", strf("%d usable of %d", m.usable, m.cores)},
                       {"caches", cache_text(m)},
                       {"memory", strf("%s of %s, %s", format_bytes(m.memory_available_bytes).c_str(),
                                       format_bytes(m.memory_bytes).c_str(), m.memory_where.c_str())},
                       {"disk", format_bytes(report.disk_bytes) + " free in " + report.folder}},
                      2);
}

std::string library_text(const SystemReport& report) {
  Table table({{"library"}, {"version"}, {"for"}, {"where"}});
  for (const LibraryInfo& library : report.libraries)
    table.row({library.name, library.found ? library.version : "not found", library.purpose,
               library.found    ? library.path
               : library.needed ? ""
                                : "optional: apt install " + library.package});
  return table.text(2);
}

std::string backend_text(const SystemReport& report) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const BackendFact& backend : report.backends)
    pairs.emplace_back(backend.name, (backend.usable ? "yes: " : "no: ") + backend.note);
  return format_pairs(pairs, 2);
}

std::string model_text(const SystemReport& report) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const BundledModel& model : report.models) pairs.emplace_back(model.name, model.path.string());
  return pairs.empty() ? "  none found\n" : format_pairs(pairs, 2);
}

void run_doctor(const Options& options, Console& console) {
  const SystemReport report(chosen_kernels(options), model_places(), environment_variable);
  console.print_json(to_json(report));
  console.print(strf("vitrail %s, %s build by %s\n", report.version.c_str(),
                     report.build_type.empty() ? "unoptimised" : report.build_type.c_str(),
                     report.compiler.c_str()));
  const std::pair<const char*, std::string> sections[] = {{"Machine", machine_text(report)},
                                                          {"Libraries", library_text(report)},
                                                          {"Backends", backend_text(report)},
                                                          {"Bundled models", model_text(report)}};
  for (const auto& [title, text] : sections)
    console.print(strf("\n%s\n%s", console.bold(title).c_str(), text.c_str()));
  const std::vector<std::string> lacks = report.missing();
  console.print(strf("\n%s\n", console.bold("Missing").c_str()));
  for (const std::string& line : lacks) console.print(strf("  %s\n", line.c_str()));
  if (lacks.empty()) console.print("  nothing\n");
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
