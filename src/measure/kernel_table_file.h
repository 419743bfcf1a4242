// The table of tuned kernels as a file: which one holds for this processor or its GPU, reading it, writing
// it. Knows no option and no environment: the folder of the user's configuration is given.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/device_info.h"

namespace vitrail {

// Whose kernels a table ranks.
struct TunedDevice {
  std::string name;  // of the processor, or of the GPU
  // Of a GPU; 0 and nothing for a processor.
  int compute = 0;
  std::string cublas;  // the version: a table numbers its algorithms

  bool is_gpu() const { return compute > 0; }
};
TunedDevice this_processor();
TunedDevice this_gpu(const DeviceInfo& device);  // one of this machine

// Where `bench tune` writes and everyone looks: below `config_home` (~/.config), named by the device. Empty
// without such a folder.
std::string own_kernels_path(const std::string& config_home, const TunedDevice& device = this_processor());
// Where tables that came with Vitrail may lie.
std::vector<std::filesystem::path> kernel_places();
// The table of a GPU that came with Vitrail; empty when there is none.
std::string shipped_kernels_path(const TunedDevice& device,
                                 const std::vector<std::filesystem::path>& places = kernel_places());

struct KernelsFile {
  std::shared_ptr<const KernelTable> table;  // null: none is used
  std::string note;                          // what was decided, for -v; empty: there is nothing to say
};

// A table made for another device, other libraries or, of a processor, another version of Vitrail, or a
// broken file, is not used; the note says why.
KernelsFile read_kernels(const std::string& path, const TunedDevice& device = this_processor());
void write_kernels(const std::string& path, const KernelTable& table,
                   const TunedDevice& device = this_processor());
// The table for `device` where nothing else is said: the user's own, else the one that came with Vitrail.
KernelsFile usual_kernels(const std::string& config_home, const TunedDevice& device);

// The table for the device of this name ("cpu", "cuda:1"): `asked` is a file, "none", or "auto", the usual
// one. A file that cannot be used is refused (kData): it was asked for. Nothing for a GPU that is not here.
KernelsFile kernels_for(const std::string& device, const std::string& asked, const std::string& config_home);

}  // namespace vitrail
