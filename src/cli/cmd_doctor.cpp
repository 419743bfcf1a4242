#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/cpu/peak.h"
#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "base/values.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/kernels_file.h"
#include "io/find_model.h"
#include "measure/host.h"
#include "measure/libraries.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

struct BackendLine {
  const char* name;
  bool usable;
  std::string note;
};

std::string cuda_note(const CudaReport& cuda) {
  if (!cuda.problem.empty()) return cuda.problem;
  return join(cuda.cards, "; ") + strf(" (driver for %s, built with CUDA %s, cuBLASLt %s)",
                                       cuda.driver.c_str(), cuda.runtime.c_str(), cuda.cublas.c_str());
}

std::vector<BackendLine> backend_lines() {
  const CudaReport cuda = cuda_report();
  return {{"ref", true, "plain loops, the oracle"},
          {"cpu", true, "the fast one on processors"},
          {"cuda", cuda.problem.empty(), cuda_note(cuda)},
          {"mpi", false, "not in this build"}};
}

double measure_peak(int threads, IsaLevel isa) {
  ThreadPool pool(std::max(threads, 1));
  return measure_peak_gflops(pool, isa);
}

struct Report {
  KernelsFile tuned;
  MachineInfo machine = read_machine();
  IsaLevel isa = best_isa();
  double peak_gflops = measure_peak(machine.usable, isa);
  std::vector<BackendLine> backends = backend_lines();
  std::vector<LibraryInfo> libraries = find_libraries();
  std::vector<std::filesystem::path> places = model_places();
  std::vector<BundledModel> models = bundled_models(places);
  std::string folder = std::filesystem::current_path().string();
  uint64_t disk_bytes = free_disk_bytes(folder);
  bool optimised = std::string(VITRAIL_BUILD_TYPE) != "Debug" && *VITRAIL_BUILD_TYPE != '\0';
};

std::vector<std::string> missing(const Report& report) {
  std::vector<std::string> lines;
  for (const LibraryInfo& library : report.libraries)
    if (library.needed && !library.found)
      lines.push_back(library.name + " (" + library.purpose + "): apt install " + library.package);
  if (report.models.empty()) {
    std::string looked;
    for (const auto& place : report.places) looked += (looked.empty() ? "" : ", ") + place.string();
    lines.push_back("bundled models; looked in " + looked + "; VITRAIL_MODELS names another folder");
  }
  if (!report.optimised)
    lines.push_back("an optimised build: this one is several times slower; use make build");
  return lines;
}

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

// "baseline, avx2 (used); not tuned: vitrail bench tune"
std::string kernels_text(const Report& report) {
  std::string text;
  for (const IsaLevel level : available_isa_levels())
    text += (text.empty() ? "" : ", ") + std::string(to_string(level));
  return text + " (used); " +
         (report.tuned.note.empty() ? "not tuned: vitrail bench tune" : report.tuned.note);
}

std::string machine_text(const Report& report) {
  const MachineInfo& m = report.machine;
  return format_pairs({{"processor", m.processor},
                       {"instructions", isa_text(m)},
                       {"kernels", kernels_text(report)},
                       {"peak", strf("%s GFLOP/s in f32, measured with %s on %d threads",
                                     format_si(report.peak_gflops).c_str(), to_string(report.isa), m.usable)},
                       {"cores", strf("%d usable of %d", m.usable, m.cores)},
                       {"caches", cache_text(m)},
                       {"memory", strf("%s of %s, %s", format_bytes(m.memory_available_bytes).c_str(),
                                       format_bytes(m.memory_bytes).c_str(), m.memory_where.c_str())},
                       {"disk", format_bytes(report.disk_bytes) + " free in " + report.folder}},
                      2);
}

std::string library_text(const Report& report) {
  Table table({{"library"}, {"version"}, {"for"}, {"where"}});
  for (const LibraryInfo& library : report.libraries)
    table.row({library.name, library.found ? library.version : "not found", library.purpose,
               library.found    ? library.path
               : library.needed ? ""
                                : "optional: apt install " + library.package});
  return table.text(2);
}

std::string backend_text(const Report& report) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const BackendLine& backend : report.backends)
    pairs.emplace_back(backend.name, (backend.usable ? "yes: " : "no: ") + backend.note);
  return format_pairs(pairs, 2);
}

std::string model_text(const Report& report) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const BundledModel& model : report.models) pairs.emplace_back(model.name, model.path.string());
  return pairs.empty() ? "  none found\n" : format_pairs(pairs, 2);
}

ordered_json as_json(const Report& report) {
  const MachineInfo& m = report.machine;
  ordered_json json = {{"version", VITRAIL_VERSION},
                       {"build", {{"type", VITRAIL_BUILD_TYPE}, {"compiler", kCompiler}}}};
  ordered_json caches = ordered_json::array();
  for (const CacheInfo& cache : m.caches)
    caches.push_back({{"name", cache.name}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
  json["cpu"] = {
      {"model", m.processor}, {"isa", m.isa}, {"cores", m.cores}, {"usable", m.usable}, {"caches", caches}};
  json["cpu"]["kernels"] = to_string(report.isa);
  json["cpu"]["tuned"] = report.tuned.table != nullptr;
  json["cpu"]["peak_gflops"] = report.peak_gflops;
  json["memory"] = {
      {"total", m.memory_bytes}, {"available", m.memory_available_bytes}, {"bound", m.memory_where}};
  json["disk"] = {{"path", report.folder}, {"free", report.disk_bytes}};
  json["libraries"] = ordered_json::array();
  for (const LibraryInfo& library : report.libraries)
    json["libraries"].push_back({{"name", library.name},
                                 {"found", library.found},
                                 {"needed", library.needed},
                                 {"version", library.version},
                                 {"for", library.purpose},
                                 {"package", library.package}});
  for (const BackendLine& backend : report.backends) json["backends"][backend.name] = backend.usable;
  const CudaReport cuda = cuda_report();
  json["cuda"] = {{"problem", cuda.problem}, {"cards", cuda.cards},   {"driver", cuda.driver},
                  {"runtime", cuda.runtime}, {"cublas", cuda.cublas}, {"plugin", cuda.plugin}};
  json["models"] = ordered_json::array();
  for (const BundledModel& model : report.models)
    json["models"].push_back({{"name", model.name}, {"path", model.path.string()}});
  json["missing"] = missing(report);
  return json;
}

void run_doctor(const Options& options, Console& console) {
  const Report report{.tuned = chosen_kernels(options)};
  console.print_json(as_json(report));
  console.print(strf("vitrail %s, %s build by %s\n", VITRAIL_VERSION,
                     *VITRAIL_BUILD_TYPE ? VITRAIL_BUILD_TYPE : "unoptimised", kCompiler));
  const std::pair<const char*, std::string> sections[] = {{"Machine", machine_text(report)},
                                                          {"Libraries", library_text(report)},
                                                          {"Backends", backend_text(report)},
                                                          {"Bundled models", model_text(report)}};
  for (const auto& [title, text] : sections)
    console.print(strf("\n%s\n%s", console.bold(title).c_str(), text.c_str()));
  const std::vector<std::string> lacks = missing(report);
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
