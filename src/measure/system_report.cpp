#include "measure/system_report.h"

#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/error.h"
#include "base/values.h"
#include "dist/mpi_world.h"
#include "measure/device_check.h"
#include "plan/devices.h"
#include "plan/target.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

std::string nccl_note(const NcclReport& nccl) {
  if (!nccl.problem.empty()) return nccl.problem;
  return nccl.version + " (" + nccl.path + ")" + (nccl.shares_gpus ? ", ranks may share a GPU" : "");
}

std::string mpi_note(const MpiReport& mpi) {
  if (!mpi.problem.empty()) return mpi.problem;
  const std::string by = mpi.mpirun.empty()
                             ? strf("no mpirun in PATH: %s", kInstallMpi)
                             : strf("by %s%s", mpi.came_along ? "what came along, for this host alone, " : "",
                                    mpi.mpirun.c_str());
  return strf("%s (%s), %s", mpi.library.c_str(), mpi.plugin.c_str(), by.c_str());
}

std::vector<BackendFact> backend_facts(const NcclReport& nccl, const MpiReport& mpi) {
  std::vector<BackendFact> facts;
  for (const BackendEntry& backend : backend_registry()) {
    const BackendReport found = backend.report();
    facts.push_back({backend.name, found.problem.empty(), found.note});
  }
  facts.push_back({"mpi", mpi.problem.empty(), mpi_note(mpi)});
  facts.push_back({"nccl", nccl.problem.empty(), nccl_note(nccl)});
  return facts;
}

double measure_peak(int threads) {
  const DeviceInfo device = processor_here(std::max(threads, 1));
  return find_entry(device.backend).measure(device, *open_device(device), "f32", false).gflops;
}

// Adds the libraries of those backends that are driven by some.
void add_libraries(ordered_json& json) {
  for (const BackendEntry& backend : backend_registry()) {
    const BackendReport found = backend.report();
    if (found.libraries.empty()) continue;
    json[backend.name] = {{"problem", found.problem}, {"cards", found.devices}};
    for (const auto& [name, text] : found.libraries) json[backend.name][name] = text;
  }
}
}  // namespace

SystemReport::SystemReport(KernelsFile table, std::vector<std::filesystem::path> model_places,
                           MpiReport chosen_mpi, const Variables& variables)
    : tuned(std::move(table)),
      machine(read_machine()),
      isa(isa_name(processor_here(1).isa)),
      isa_levels(isa_names_here()),
      peak_gflops(measure_peak(machine.usable)),
      device_files(files_of_this_machine(all_device_files(shipped_places("devices", "configs/devices")))),
      nccl(nccl_report(variables)),
      mpi(std::move(chosen_mpi)),
      backends(backend_facts(nccl, mpi)),
      libraries(find_libraries()),
      places(std::move(model_places)),
      models(bundled_models(places)),
      folder(std::filesystem::current_path().string()),
      disk_bytes(free_disk_bytes(folder)),
      version(VITRAIL_VERSION),
      build_type(VITRAIL_BUILD_TYPE),
      compiler(kCompiler),
      optimised(build_type != "Debug" && !build_type.empty()) {}

std::vector<std::string> SystemReport::missing() const {
  std::vector<std::string> lines;
  for (const LibraryInfo& library : libraries)
    if (library.needed && !library.found)
      lines.push_back(library.name + " (" + library.purpose + "): apt install " + library.package);
  if (models.empty()) {
    std::string looked;
    for (const auto& place : places) looked += (looked.empty() ? "" : ", ") + place.string();
    lines.push_back("bundled models; looked in " + looked + "; VITRAIL_MODELS names another folder");
  }
  if (!optimised) lines.push_back("an optimised build: this one is several times slower; use make build");
  return lines;
}

ordered_json to_json(const SystemReport& report) {
  const MachineInfo& m = report.machine;
  ordered_json json = {{"version", report.version},
                       {"build", {{"type", report.build_type}, {"compiler", report.compiler}}}};
  ordered_json caches = ordered_json::array();
  for (const CacheInfo& cache : m.caches)
    caches.push_back({{"name", cache.name}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
  json["cpu"] = {
      {"model", m.processor}, {"isa", m.isa}, {"cores", m.cores}, {"usable", m.usable}, {"caches", caches}};
  json["cpu"]["kernels"] = report.isa;
  json["cpu"]["tuned"] = report.tuned.table != nullptr;
  json["cpu"]["peak_gflops"] = report.peak_gflops;
  json["memory"] = {
      {"total", m.memory_bytes}, {"available", m.memory_available_bytes}, {"bound", m.memory_where}};
  json["device_files"] = report.device_files;
  json["disk"] = {{"path", report.folder}, {"free", report.disk_bytes}};
  json["libraries"] = ordered_json::array();
  for (const LibraryInfo& library : report.libraries)
    json["libraries"].push_back({{"name", library.name},
                                 {"found", library.found},
                                 {"needed", library.needed},
                                 {"version", library.version},
                                 {"for", library.purpose},
                                 {"package", library.package}});
  for (const BackendFact& backend : report.backends) json["backends"][backend.name] = backend.usable;
  json["mpi"] = {{"problem", report.mpi.problem},
                 {"library", report.mpi.library},
                 {"plugin", report.mpi.plugin},
                 {"mpirun", report.mpi.mpirun},
                 {"came_along", report.mpi.came_along}};
  json["nccl"] = {
      {"problem", report.nccl.problem}, {"version", report.nccl.version}, {"path", report.nccl.path}};
  add_libraries(json);
  json["models"] = ordered_json::array();
  for (const BundledModel& model : report.models)
    json["models"].push_back({{"name", model.name}, {"path", model.path.string()}});
  json["missing"] = report.missing();
  return json;
}

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
  return format_pairs(
      {{"processor", m.processor},
       {"instructions", isa_text(m)},
       {"kernels", kernels_text(report)},
       {"peak", strf("%s GFLOP/s in f32, measured with %s on %d threads",
                     format_si(report.peak_gflops).c_str(), report.isa.c_str(), m.usable)},
       {"device file", report.device_files.empty()
                           ? "none describes this machine: vitrail bench calibrate"
                           : join(report.device_files, ", ") + ": plan --target predicts with it"},
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

}  // namespace

std::vector<std::pair<const char*, std::string>> sections_of(const SystemReport& report) {
  std::string lacks;
  for (const std::string& line : report.missing()) lacks += "  " + line + "\n";
  return {{"Machine", machine_text(report)},
          {"Libraries", library_text(report)},
          {"Backends", backend_text(report)},
          {"Bundled models", model_text(report)},
          {"Missing", lacks.empty() ? "  nothing\n" : lacks}};
}

}  // namespace vitrail
