#include "launch/chosen_mpi.h"

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "io/find_model.h"
#include "launch/environment.h"

namespace vitrail {

namespace {

bool is_program(const std::filesystem::path& file) {
  return ::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file);
}

std::string program_in(const std::string& path, const std::string& name) {
  for (const std::string_view folder : split(path, ':')) {
    const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (is_program(file)) return file.string();
  }
  return {};
}

// Only a program that lies in a folder bin brings one: what is beside any other folder need not be ours.
std::filesystem::path brought_by(const std::filesystem::path& program) {
  const std::filesystem::path bin = program.parent_path();
  if (bin.filename() != "bin") return {};
  const std::filesystem::path own = bin.parent_path() / "lib/vitrail/openmpi";
  return is_program(own / "bin/mpirun") ? own : std::filesystem::path();
}

// Open MPI, PMIx and hwloc were built to lie elsewhere (cmake/bundle_mpi.cmake); ranks inherit what mpirun is
// told. hwloc has no plugins here, and a host's may be of another version.
Assignments places_in(const std::filesystem::path& own) {
  const std::string prefix = own.string(), lib = prefix + "/lib", share = prefix + "/share",
                    settings = prefix + "/etc";
  const char* others = environment_variable("LD_LIBRARY_PATH");
  return {{"OPAL_PREFIX", prefix},
          {"OPAL_LIBDIR", lib},
          {"OPAL_PKGLIBDIR", lib + "/openmpi"},
          {"OPAL_PKGDATADIR", share + "/openmpi"},
          {"OPAL_SYSCONFDIR", settings},
          {"PMIX_PREFIX", prefix},
          {"PMIX_LIBDIR", lib},
          {"PMIX_DATADIR", share},
          {"PMIX_SYSCONFDIR", settings},
          {"HWLOC_PLUGINS_PATH", lib + "/hwloc"},
          {"LD_LIBRARY_PATH", others && *others ? lib + ":" + others : lib}};
}

}  // namespace

MpiSearch usual_mpi_search() {
  const char* path = environment_variable("PATH");
  return {.path = path ? path : "", .program = this_program()};
}

ChosenMpi choose_mpi(const MpiSearch& search) {
  const std::string mpirun = program_in(search.path, "mpirun");
  const std::filesystem::path own = brought_by(search.program);
  if (!mpirun.empty() || own.empty()) {
    ChosenMpi host{.report = search.report({})};
    host.report.mpirun = mpirun;
    host.problem = mpirun.empty() ? strf("mpirun is not in PATH; %s", kInstallMpi) : host.report.problem;
    if (host.problem.empty() || own.empty()) return host;
  }
  ChosenMpi brought{.report = search.report(own / "lib"), .environment = places_in(own)};
  brought.report.mpirun = (own / "bin/mpirun").string();
  brought.report.came_along = true;
  brought.problem = brought.report.problem;
  return brought;
}

}  // namespace vitrail
