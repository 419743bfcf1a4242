// Reports what this machine and this build can do, and what is missing, as `doctor` shows it. Measures the
// processor's peak, which takes about a tenth of a second; prints nothing.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dist/mpi_world.h"
#include "dist/nccl_world.h"
#include "io/find_model.h"
#include "measure/host.h"
#include "measure/kernel_table_file.h"
#include "measure/libraries.h"

namespace vitrail {

struct BackendFact {
  const char* name;
  bool usable;
  std::string note;
};

struct SystemReport {
  // `model_places` are the folders in which bundled models may lie; `table` is the table of kernels that
  // applies here; `chosen_mpi` starts ranks; `variables` are those of the environment, in which NCCL's file
  // may be named.
  SystemReport(KernelsFile table, std::vector<std::filesystem::path> model_places, MpiReport chosen_mpi,
               const Variables& variables = {});

  KernelsFile tuned;
  MachineInfo machine;
  std::string isa;                      // the best instruction set
  std::vector<std::string> isa_levels;  // all that this processor has
  double peak_gflops = 0;
  std::vector<std::string> device_files;  // that describe this machine
  NcclReport nccl;
  MpiReport mpi;
  std::vector<BackendFact> backends;
  std::vector<LibraryInfo> libraries;
  std::vector<std::filesystem::path> places;
  std::vector<BundledModel> models;
  std::string folder;  // the working folder
  uint64_t disk_bytes = 0;
  std::string version, build_type, compiler;
  bool optimised = true;

  // Returns one line for each missing thing, with its remedy.
  std::vector<std::string> missing() const;
};
nlohmann::ordered_json to_json(const SystemReport& report);
// Returns the report for people, by titles.
std::vector<std::pair<const char*, std::string>> sections_of(const SystemReport& report);

}  // namespace vitrail
