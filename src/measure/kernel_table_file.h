// The table of tuned kernels as a file: which one applies to this processor or its GPU, reading it, writing
// it. Knows no option and no environment: the folder of the user's configuration is an argument.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/registry.h"

namespace vitrail {

// The device whose kernels a table ranks.
struct TunedDevice {
  const BackendEntry* backend;  // whose facts say what a table holds for
  std::string name;             // of the processor or of the GPU
  int compute = 0;              // the capability of a GPU
  // The versions of the libraries whose kernels a table names.
  std::function<std::map<std::string, std::string>(const KernelTable&)> libraries;

  const TunedTables& tables() const { return backend->tables; }
};
TunedDevice this_processor();
TunedDevice tuned_device(const DeviceInfo& device);  // a device of this machine

// Returns the path where `bench tune` writes and every command looks: below `config_home` (~/.config), named
// by the device; empty without such a folder.
std::string own_kernels_path(const std::string& config_home, const TunedDevice& device = this_processor());
// Returns the places of tables shipped with Vitrail.
std::vector<std::filesystem::path> kernel_places();
// Returns the shipped table of a device; empty when there is none.
std::string shipped_kernels_path(const TunedDevice& device,
                                 const std::vector<std::filesystem::path>& places = kernel_places());

struct KernelsFile {
  std::shared_ptr<const KernelTable> table;  // null: none is used
  std::string note;                          // what was decided, for -v; empty: there is nothing to say
};

// Reads a table. One made for another device, other libraries or, for a processor, another version of
// Vitrail, or a broken file, is not used; the note says why.
KernelsFile read_kernels(const std::string& path, const TunedDevice& device = this_processor());
void write_kernels(const std::string& path, const KernelTable& table,
                   const TunedDevice& device = this_processor());
// Returns the default table for `device`: the user's own, else the one shipped with Vitrail.
KernelsFile usual_kernels(const std::string& config_home, const TunedDevice& device);

// Returns the table for the device of this name ("cpu", "cuda:1"): `asked` is a file, "none", or "auto" for
// the default. A file given explicitly that cannot be used is refused (kData). Returns nothing for a GPU that
// is not present.
KernelsFile kernels_for(const std::string& device, const std::string& asked, const std::string& config_home);

// Returns the rows that a new table in this place begins with: those of the file there as long as they hold
// for the device, else those of the usual table; none where there is no file and `config_home` is empty.
KernelTable kernels_to_extend(const std::string& path, const std::string& config_home,
                              const TunedDevice& device);

}  // namespace vitrail
