// The backends of this build, one row each: what their devices are, how one is opened and measured, and which
// kernels and types it has. Only registry.cpp knows which backends there are; everything else goes by the
// facts of a row or of a DeviceInfo.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/device.h"
#include "backend/kernel.h"

namespace vitrail {

// The choices a user may make about a device. Each backend reads those that concern it.
struct DeviceRequest {
  int ordinal = 0;       // which of several
  int threads = 0;       // of a CPU; 0: one per core
  std::string isa = {};  // of a CPU; empty: the best it has
};

// A device to plan for, which this machine need not have. Each backend reads what its devices have.
struct PlannedDevice {
  std::string name = {};
  size_t memory_bytes = 0;
  int threads = 0;       // of a CPU; 0: one per core of this machine
  std::string isa = {};  // of a CPU: any of this build
  int compute = 0, processors = 0;
  size_t l2_bytes = 0;
};

struct DevicePeaks {
  double gflops = 0;
  double gbps = 0;  // of copying, bytes read and bytes written both counted; 0 where it was not measured
};

// Holds what a backend finds on this machine.
struct BackendReport {
  std::string problem;               // why it has no device here; empty: it has one
  std::vector<std::string> devices;  // a line of text each
  // Versions and places of the libraries that drive them; a backend that is driven by none has none.
  std::vector<std::pair<const char*, std::string>> libraries;
  std::string note;  // all that in one line
};

// Holds what is said of a type that a backend does not compute in.
struct UnsupportedType {
  std::string message, hint;
};

// Says what a table of tuned kernels holds for, and how one comes about.
struct TunedTables {
  const char* key;  // the word under which a table names its device
  // The kernels of GEMMs of given sizes that are measured for it, with any instruction set and number of
  // threads; null: those of a program are, on the device as it is.
  const std::vector<OpKernels>& (*of_sizes)();
  bool by_isa;  // each row holds for one instruction set and number of threads; otherwise for the device
  // Its rows name kernels of this program, so that they hold for one version of it alone; otherwise
  // algorithms of a library, by number.
  bool of_one_version;
  bool shipped;  // tables come with the program, in files with the devices' names in lower case
  // The versions of the libraries whose kernels a table names.
  std::map<std::string, std::string> (*libraries)(const KernelTable&);
};

struct BackendEntry {
  const char* name;
  const Backend& (*kernels)();
  // The backend whose devices it runs on: its own, which are named after it ("cuda:1"), or another.
  const char* runs_on;
  bool numbered;      // there may be several devices, told apart by a number
  bool on_host;       // its device is the processor of this process, which is always there
  bool is_reference;  // its plain loops are what others are compared with
  bool by_isa;        // its kernels are compiled for each instruction set
  // The types that a model can be computed in, by name, and what is said of the others, with `dash` before
  // the names of settings.
  std::vector<std::string> types;
  UnsupportedType (*unsupported)(const std::string& type, const char* dash);
  bool rounds_activations;  // such a type holds for activations, too; otherwise for the GEMMs alone
  TunedTables tables;
  BackendReport (*report)();
  DeviceInfo (*find)(const DeviceRequest&);  // Error(kDevice) or Error(kUsage) when there is none
  DeviceInfo (*planned)(const PlannedDevice&);
  std::unique_ptr<Device> (*open)(const DeviceInfo&);
  // Measures an opened device's peak in GEMMs of a type and, where `copying`, its copy bandwidth.
  DevicePeaks (*measure)(const DeviceInfo&, Device&, const std::string& type, bool copying);

  bool names_devices() const { return std::string_view(name) == runs_on; }
};

const std::vector<BackendEntry>& backend_registry();
// The row of a backend; throws Error(kUsage) for an unknown name.
const BackendEntry& find_entry(std::string_view backend);

// The row whose device is the processor of this process.
const BackendEntry& host_entry();

// A device by name: "cpu", "cuda", "cuda:1". Any other name throws Error(kUsage), which names `option`.
struct DeviceName {
  const BackendEntry* entry;
  int ordinal;
};
DeviceName parse_device_name(const std::string& name, const char* option = "--device");
// The row whose kernels run on a device: that of `backend` where it runs there, else the device's own.
const BackendEntry& entry_on(const DeviceName& device, std::string_view backend);

}  // namespace vitrail
