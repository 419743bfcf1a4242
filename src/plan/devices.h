// Devices by their names: "cpu", "cuda", "cuda:1"; the processor's instruction sets, and the device of a plan
// as text. Knows no option of the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "plan/kernel_choice.h"

namespace vitrail {

// Holds what the name of a device says, "cuda:1": the second of those of the backend "cuda".
struct NamedDevice {
  std::string backend;       // whose devices are called so
  int ordinal = 0;           // which of several
  bool on_host = false;      // the processor of this process
  bool tunes_sizes = false;  // tables of its kernels are measured by sizes of GEMMs, others by a program
};
// Any other name throws Error(kUsage), which names `option`.
NamedDevice named_device(const std::string& device, const char* option = "device");
// Returns whether devices are named after this backend; one that has none runs on the processor.
bool names_devices(const std::string& backend);

// Returns the device of that name; a processor with so many threads (0: one per core) and the best
// instruction set or the one named. Throws Error(kDevice) when it is not present.
DeviceInfo device_here(const std::string& device, int threads, const std::string& isa);
// Returns the processor of this process.
DeviceInfo processor_here(int threads = 0, const std::string& isa = "");
// Returns the same for another backend that runs there: "ref" on the processor.
DeviceInfo device_of(const std::string& backend, const std::string& device, int threads,
                     const std::string& isa);
// A rank among those of its host.
struct HostRank {
  int local = 0, sharing = 1;
  int overlapping = 0;       // of those, it included, that may run on a core of its own; 0: all of them
  bool shares_gpus = false;  // ranks beyond the last GPU begin again with the first

  // Returns as many threads as its share of the cores: one that is bound to cores of its own has them alone.
  int threads() const;
  // The rank so many places behind it, of the same process.
  HostRank after(int places) const { return {local + places, sharing, overlapping, shares_gpus}; }
};
// Returns how many of the ranks of a host, whose cores these are, may run on a core of rank `mine`; a rank
// whose cores are not known may run on any.
int ranks_on_cores_of(size_t mine, const std::vector<std::vector<int>>& cores);
// Returns the GPU of a rank on a host with so many; where there are none, what opens it says so. Throws
// Error(kDevice) for a rank beyond the last one, unless ranks may share.
int gpu_of(const HostRank& rank, int gpus);
// Returns the device of a rank: its share of the cores where `threads` is 0, and the GPU of its number where
// `device` gives none. Throws Error(kDevice) when there is none left for it.
DeviceInfo device_of_rank(const std::string& backend, std::string device, int threads, const std::string& isa,
                          const HostRank& rank);
// Returns whether this backend is the yardstick of the others.
bool is_reference(const std::string& backend);
// Returns the number of processor threads that `threads` means; 0: one per core.
int processor_threads(int threads, const std::string& isa);

// Instruction sets by name, lowest first: those of this build, and those of them that this processor has.
std::vector<std::string> isa_names();
std::vector<std::string> isa_names_here();
std::string isa_name(int isa);  // DeviceInfo::isa
// Returns the number of an instruction set that this processor has; nothing for others.
std::optional<int> isa_here(const std::string& name);
// Returns whether this processor has the device's instruction set.
bool runs_here(const DeviceInfo& device);

// Returns "cpu (avx2, 2 threads)".
std::string device_text(const ExecutionPlan& plan);

}  // namespace vitrail
